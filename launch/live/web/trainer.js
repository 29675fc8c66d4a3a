// Training by the file of a run, in LiteRT.js. Its tensors are no garbage of JavaScript's: each is deleted by hand.

import { JoinError, Stopped } from "./errors.js";
import { Environment, LiteRt, loadAndCompile, setGlobalLiteRt, supportsFeature, Tensor } from "./litert.js";
import { findLargest } from "./maths.js";
import { countOf } from "./messages.js";
import { chooseBatch, makePause } from "./batches.js";

const SIGNATURES = ["train", "infer", "get_weights", "set_weights"];

// Starts the build that this browser can run, without threads and without the GPU. `version` is that of LiteRT.js; it
// names what may be taken from the browser's cache.
export async function startRuntime(version) {
  const build = (await supportsFeature("relaxedSimd")) ? "default" : "compat";
  const { default: makeModule } = await import(`./litert_${build}.js?${version}`);
  const locateFile = () => new URL(`./litert_${build}.wasm?${version}`, import.meta.url).href;
  const ignore = () => {};
  const runtime = new LiteRt(await makeModule({ locateFile, print: ignore, printErr: ignore }));
  setGlobalLiteRt(runtime);
  runtime.setDefaultEnvironment(new Environment({ webGpuDevice: null }));
}

export class Trainer {
  constructor(model) {
    this.model = model;
    this.shapes = new Map(model.signatures.set_weights.getInputDetails().map(({ name, shape }) => [name, [...shape]]));
    const { shape } = model.signatures.train.getInputDetails().find(({ name }) => name === "x");
    [this.batchSize, ...this.inputShape] = shape;
    this.size = countOf(this.inputShape);
    this.pause = makePause();
  }

  // Of the bytes of a training file. Throws a JoinError if they are none.
  static async load(content) {
    try {
      const model = await loadAndCompile(content, { accelerator: "wasm" });
      if (!SIGNATURES.every((name) => name in model.signatures)) throw new Error("it lacks functions");
      return new Trainer(model);
    } catch (error) {
      throw new JoinError(`the training file cannot be used here: ${error.message ?? error}`);
    }
  }

  // Throws a JoinError unless the weights and orders of a task are such as the file takes.
  check({ header, arrays }, numExamples) {
    const names = [...arrays.keys()].filter((name) => name !== "order");
    const isWeight = (name) =>
      arrays.get(name).data instanceof Float32Array && String(arrays.get(name).shape) === String(this.shapes.get(name));
    let isFine = names.length === this.shapes.size && names.every(isWeight);
    if (header.type !== "evaluate" && isFine) {
      const { data, shape } = arrays.get("order") ?? { data: null, shape: [] };
      const perEpoch = Math.ceil(numExamples / this.batchSize);
      isFine = data instanceof Uint16Array || data instanceof Uint32Array;
      isFine &&=
        shape.length === 2 && shape[1] === numExamples && numExamples > 0 && data.every((row) => row < numExamples);
      isFine &&= Number.isInteger(header.steps) && header.steps >= 0 && header.steps <= shape[0] * perEpoch;
      isFine &&= header.batch_size === this.batchSize && Number.isFinite(header.learning_rate);
    }
    if (!isFine) throw new JoinError("the server sent a task that does not fit its training file or these examples");
  }

  // Trains from the task's weights by its orders, and calls `onStep(step, steps, loss)`. Throws Stopped after the step
  // in which `work.isStopped` is set. Returns the fields of an answer, and what was trained less what was sent.
  async train({ header, arrays }, { trainX, trainY }, work, onStep) {
    const begun = performance.now();
    const { steps, learning_rate: rate } = header;
    const { data: order } = arrays.get("order");
    await this.setWeights(arrays);
    let [numTrained, lossSum] = [0, 0];
    for (let step = 0; step < steps; step++) {
      const { rows, labels, count } = chooseBatch(order, trainY.length, trainY, this.batchSize, step);
      const x = new Float32Array(rows.length * this.size);
      rows.forEach((row, i) => x.set(trainX.subarray(row * this.size, (row + 1) * this.size), i * this.size));
      const loss = await this.step(x, labels, rate);
      numTrained += count;
      lossSum += loss * count;
      if (work.isStopped) throw new Stopped();
      if (await this.pause()) onStep(step + 1, steps, lossSum / numTrained);
    }
    const trained = await this.run("get_weights", { unused: [new Int32Array([0]), []] });
    const deltas = new Map();
    for (const [name, shape] of this.shapes) {
      const start = arrays.get(name).data;
      deltas.set(name, { data: Float32Array.from(trained[name], (value, i) => value - start[i]), shape });
    }
    const seconds = (performance.now() - begun) / 1000;
    return { header: { num_trained: numTrained, loss_sum: lossSum, seconds }, arrays: deltas };
  }

  // Whether the examples of a test part are told right by these weights: num, correct and the sum of cross-entropies.
  async measure(weights, x, y, work) {
    await this.setWeights(weights);
    let [correct, lossSum] = [0, 0];
    for (let i = 0; i < y.length; i++) {
      const logits = await this.infer(x.slice(i * this.size, (i + 1) * this.size));
      const found = findLargest(logits);
      const sum = logits.reduce((total, logit) => total + Math.exp(logit - logits[found]), 0);
      lossSum += logits[found] + Math.log(sum) - logits[y[i]];
      correct += found === y[i];
      if (work.isStopped) throw new Stopped();
      await this.pause();
    }
    return { num: y.length, correct, loss_sum: lossSum };
  }

  async setWeights(arrays) {
    const given = [...this.shapes].map(([name, shape]) => [name, [arrays.get(name).data, shape]]);
    await this.run("set_weights", Object.fromEntries(given));
  }

  // The logits of one example, as numbers of 64 bits.
  async infer(x) {
    return Array.from((await this.run("infer", { x: [x, [1, ...this.inputShape]] })).logits);
  }

  async step(x, labels, rate) {
    const given = { x: [x, [labels.length, ...this.inputShape]], y: [labels, [labels.length]] };
    return (await this.run("train", { ...given, learning_rate: [new Float32Array([rate]), []] })).loss[0];
  }

  // Calls a function of the file: {name: [values, shape]} to {name: values}.
  async run(signature, given) {
    const tensors = {};
    let outputs = {};
    try {
      for (const [name, [values, shape]] of Object.entries(given)) tensors[name] = new Tensor(values, shape);
      outputs = await this.model.run(signature, tensors);
      return Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, tensor.toTypedArray()]));
    } finally {
      for (const tensor of [...Object.values(tensors), ...Object.values(outputs)]) tensor.delete();
    }
  }
}
