// Training files in the browser: ten steps on one batch of the page's examples, the weights out and in again, and ten
// steps from there, a round of their own. `check_page.py` takes the same steps and compares.

import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";

const STEPS = 10;
const LEARNING_RATE = 0.02; // where the run has none

// Trains every training file beside the page, in the page, whose runtime is loaded: what each did, and what was wrong.
export async function trainFiles(page, folder) {
  const trainings = [];
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".training.tflite"))) {
    const bytes = readFileSync(path.join(folder, name)).toString("base64");
    const description = JSON.parse(readFileSync(path.join(folder, name.replace(/\.tflite$/, ".json")), "utf8"));
    const rate = description.local_training.learning_rate ?? LEARNING_RATE;
    trainings.push({ name, rate, ...(await page.evaluate(train, { bytes, rate, steps: STEPS })) });
  }
  return trainings;
}

export function findProblems({ name, losses, moved, isRestored }) {
  const problems = [];
  if (!(losses[STEPS - 1] < losses[0])) problems.push(`${name}: the loss does not fall: ${losses.join(", ")}`);
  if (!moved) problems.push(`${name}: a step does not move the logits`);
  if (!isRestored) problems.push(`${name}: the weights, set again, do not give the same logits`);
  return problems;
}

// Runs in the page, so it can use nothing from outside of itself.
async function train({ bytes, rate, steps }) {
  const unpack = async (text) => {
    const packed = new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]);
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  };
  const data = JSON.parse(document.querySelector("#page-data").textContent);
  const stored = new { uint8: Uint8Array, float32: Float32Array }[data.dtype](await unpack(document.querySelector("#examples").textContent));
  const file = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  const model = await LiteRT.loadAndCompile(file, { accelerator: "wasm" });
  const shape = [...model.signatures.train.getInputDetails().find(({ name }) => name === "x").shape];
  const size = shape.slice(1).reduce((product, length) => product * length, 1);
  const example = (row) => stored.slice(row * size, (row + 1) * size);
  const chosen = Array.from({ length: shape[0] }, (_, row) => (row * 7) % data.sample.labels.length);
  const examples = Float32Array.from(chosen.flatMap((row) => [...example(row)]), (value) => value * data.scale + data.offset);
  const x = new LiteRT.Tensor(examples, shape);
  const y = new LiteRT.Tensor(Int32Array.from(chosen, (row) => data.sample.labels[row]), [shape[0]]);
  const learning_rate = new LiteRT.Tensor(new Float32Array([rate]), []);
  const step = async () => (await (await model.run("train", { x, y, learning_rate })).loss.data())[0];
  const one = new LiteRT.Tensor(examples.slice(0, size), [1, ...shape.slice(1)]);
  const infer = async () => String(await (await model.run("infer", { x: one })).logits.data());
  const losses = [];
  for (let i = 0; i < steps; i++) losses.push(await step());
  const weights = await model.run("get_weights", { unused: new LiteRT.Tensor(new Int32Array([0]), []) });
  const before = await infer();
  await step();
  const moved = (await infer()) !== before;
  await model.run("set_weights", weights);
  const isRestored = (await infer()) === before;
  for (let i = 0; i < steps; i++) losses.push(await step());
  return { chosen, losses, moved, isRestored };
}
