// A fifth of a person's examples is held out for tests: drawn by the client's key, so that it is the same when the page
// is loaded again. `join.py` draws by NumPy, and so others.

import { sha256 } from "./sha256.js";

const SHARE = 5;

// {trainX, trainY, testX, testY} of x (examples * width) and y; each part keeps its order.
export function holdOut(x, y, key) {
  const width = x.length / y.length;
  const isTest = new Uint8Array(y.length);
  shuffle(y.length, key)
    .slice(0, countHeldOut(y.length))
    .forEach((row) => (isTest[row] = 1));
  const take = (part) => {
    const rows = Array.from(isTest.keys()).filter((row) => isTest[row] === part);
    const taken = new Float32Array(rows.length * width);
    rows.forEach((row, i) => taken.set(x.subarray(row * width, (row + 1) * width), i * width));
    return [taken, Int32Array.from(rows, (row) => y[row])];
  };
  const [[trainX, trainY], [testX, testY]] = [take(0), take(1)];
  return { trainX, trainY, testX, testY };
}

export function countHeldOut(number) {
  return Math.floor(number / SHARE);
}

// The numbers below `size` in an order that follows from the key.
export function shuffle(size, key) {
  const draw = makeRandom(key);
  const order = Array.from({ length: size }, (_, i) => i);
  for (let i = size - 1; i > 0; i--) {
    const other = Math.floor(draw() * (i + 1));
    [order[i], order[other]] = [order[other], order[i]];
  }
  return order;
}

// Numbers from 0 to 1 by the generator sfc32 (C. Doty-Humphrey), begun by the digest of a text.
function makeRandom(text) {
  const digest = sha256(new TextEncoder().encode(text));
  let [a, b, c, counter] = [0, 8, 16, 24].map((start) => parseInt(digest.slice(start, start + 8), 16) | 0);
  return () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
}
