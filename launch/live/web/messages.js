// The wire format of live rounds (docs/live.md), with the same checks as `launch/live/join.py`. A message is {header,
// arrays}: a header with `type`, and a Map of name to {data, shape}, where `data` is one of the typed arrays below.

import { JoinError } from "./errors.js";

export const VERSION = 2;
export const MOST_BYTES = 2 ** 29; // of a message or a file
const MOST_HEADER_BYTES = 2 ** 20;
const DTYPES = new Map([
  ["<f4", Float32Array],
  ["<i4", Int32Array],
  ["<u2", Uint16Array],
  ["<u4", Uint32Array],
  ["|u1", Uint8Array],
]);

// The bytes of a message, an ArrayBuffer.
export function pack(header, arrays = new Map()) {
  const listed = Array.from(arrays, ([name, { data, shape }]) => [name, nameType(data), shape]);
  const text = new TextEncoder().encode(JSON.stringify({ ...header, arrays: listed }));
  const start = 4 + padded(text.length);
  const size = [...arrays.values()].reduce((sum, { data }) => sum + padded(data.byteLength), start);
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setUint32(0, start - 4, true);
  bytes.fill(0x20, 4, start);
  bytes.set(text, 4);
  let place = start;
  for (const { data } of arrays.values()) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), place);
    place += padded(data.byteLength);
  }
  return bytes.buffer;
}

// The message in an ArrayBuffer; its arrays are copies. Throws a JoinError.
export function unpack(buffer) {
  try {
    return read(buffer);
  } catch {
    throw new JoinError("the server sent what is no message of live rounds; is the address right?");
  }
}

function read(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  check(size <= Math.min(MOST_HEADER_BYTES, buffer.byteLength - 4));
  const text = new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 4, size));
  const { arrays: listed, ...header } = JSON.parse(text);
  check(typeof header.type === "string" && Array.isArray(listed));
  const arrays = new Map();
  let place = 4 + size;
  for (const [name, dtype, shape] of listed) {
    const ArrayType = DTYPES.get(dtype);
    check(ArrayType && typeof name === "string" && !arrays.has(name) && Array.isArray(shape) && shape.length <= 8);
    check(shape.every((length) => Number.isInteger(length) && length >= 0 && length < 2 ** 31));
    const numBytes = countOf(shape) * ArrayType.BYTES_PER_ELEMENT;
    check(numBytes <= buffer.byteLength - place);
    arrays.set(name, { data: new ArrayType(buffer.slice(place, place + numBytes)), shape });
    place += padded(numBytes);
  }
  check(place === buffer.byteLength);
  return { header, arrays };
}

function check(isFine) {
  if (!isFine) throw new RangeError();
}

function padded(size) {
  return size + (-size & 3);
}

function nameType(data) {
  return [...DTYPES].find(([, ArrayType]) => data instanceof ArrayType)[0];
}

// How many numbers an array of this shape has.
export function countOf(shape) {
  return shape.reduce((product, length) => product * length, 1);
}
