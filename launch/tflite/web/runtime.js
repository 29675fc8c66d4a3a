// What is packed into the page, and LiteRT.js, which runs the models. `LiteRT` is its library, a script before this one.

import { preprocess, readOutputs } from "./maths.js";

const KEPT_TIMES = 50;
const PAUSE_EVERY_MS = 30;

// The bytes of something packed into the page, gzip in base64.
export async function unpack(name) {
  const text = document.getElementById(name).textContent;
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Starts the build that this browser can run, without threads and without the GPU, and returns its name.
export async function startRuntime() {
  const build = (await LiteRT.supportsFeature("relaxedSimd")) ? "default" : "compat";
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await unpack(`runtime-${build}-script`));
  document.head.append(script); // it runs at once and defines ModuleFactory
  const log = (line) => console.debug(line);
  const wasmBinary = await unpack(`runtime-${build}-wasm`);
  const runtime = new LiteRT.LiteRt(await ModuleFactory({ wasmBinary, print: log, printErr: log }));
  LiteRT.setGlobalLiteRt(runtime);
  runtime.setDefaultEnvironment(new LiteRT.Environment({ webGpuDevice: null }));
  return build;
}

// What long work awaits after each step: now and then it calls `onProgress` with what is done, and lets the browser draw.
export function makePause(onProgress) {
  let paused = performance.now();
  return async (done) => {
    if (performance.now() - paused <= PAUSE_EVERY_MS) return;
    onProgress(done);
    await new Promise((resolve) => setTimeout(resolve));
    paused = performance.now();
  };
}

// One exported file, ready to run: stored values in, outputs as the page reads them out. `times` are those of its last calls, in ms.
export class Classifier {
  constructor(file, compiled) {
    this.file = file;
    this.times = [];
    this.compiled = compiled;
  }

  static async load(file) {
    return new Classifier(file, await LiteRT.loadAndCompile(await unpack(file.asset), { accelerator: "wasm" }));
  }

  // A call is timed from the values to the outputs: copying in, computing, copying out.
  async classify(stored, form) {
    const { scale, offset } = form;
    const values = preprocess(stored, scale, offset);
    // The first call also prepares the file. It is not timed: it may take ten times as long as the others.
    if (!this.times.length) await this.compute(values);
    const start = performance.now();
    const outputs = await this.compute(values);
    this.times.push(performance.now() - start);
    if (this.times.length > KEPT_TIMES) this.times.shift();
    return readOutputs(outputs, form);
  }

  async compute(values) {
    // As the file has it: features are stored with an axis for their one channel, which a model may not want.
    const [{ shape }] = this.compiled.getInputDetails();
    const input = new LiteRT.Tensor(values, [...shape]);
    const [output] = await this.compiled.run(input);
    const outputs = output.toTypedArray();
    input.delete();
    output.delete();
    return outputs;
  }

  delete() {
    this.compiled.delete();
  }
}

// The smallest difference that the browser's clock shows, in ms: between 0.005 and 1.
export function measureClockStep() {
  let smallest = 1;
  for (let i = 0; i < 5; i++) {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    smallest = Math.min(smallest, now - start);
  }
  return smallest;
}
