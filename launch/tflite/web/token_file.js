// An exported file that takes tokens. `LiteRT` is its library, a script before this one.

import { findLargest } from "./maths.js";
import { makePause, unpack } from "./runtime.js";
import { countTokens, takePosition } from "./text.js";

const KEPT_CALLS = 50;

export class TokenFile {
  constructor(file, compiled) {
    this.file = file;
    this.times = [];
    this.compiled = compiled;
  }

  static async load(file) {
    return new TokenFile(file, await LiteRT.loadAndCompile(await unpack(file.asset), { accelerator: "wasm" }));
  }

  // The logits of all positions, one after the other. A call is timed from the tokens to the logits.
  async compute(tokens) {
    // The first call also prepares the file. It is not timed: it may take ten times as long as the others.
    if (!this.times.length) await this.run(tokens);
    const start = performance.now();
    const logits = await this.run(tokens);
    this.times.push(performance.now() - start);
    if (this.times.length > KEPT_CALLS) this.times.shift();
    return logits;
  }

  async run(tokens) {
    const input = new LiteRT.Tensor(tokens, [1, tokens.length]);
    const [output] = await this.compiled.run(input);
    const logits = output.toTypedArray();
    input.delete();
    output.delete();
    return logits;
  }

  delete() {
    this.compiled.delete();
  }
}

// Runs one file over test examples: the likeliest token at each position, and how many are right or the report's.
export async function checkFile(tokenFile, examples, { sample, size, padding }, onProgress) {
  const counts = { total: 0, correct: 0, agreeing: 0 };
  const found = [];
  const pause = makePause(onProgress);
  for (const [i, example] of examples.entries()) {
    const logits = await tokenFile.compute(Int32Array.from(example));
    found.push(Array.from(example, (_, position) => findLargest(takePosition(logits, position, size))));
    const own = countTokens(found[i], sample.labels[i], tokenFile.file.predictions[i], padding);
    for (const key of Object.keys(counts)) counts[key] += own[key];
    await pause(i + 1);
  }
  return { file: tokenFile.file, tokens: found, ...counts };
}
