// The test examples inside the page, as the data set stores them.

const ARRAYS = { uint8: Uint8Array, int32: Int32Array, float32: Float32Array };

// Bytes in the order of the report's machine (little-endian, as every phone's) to one array of values per example.
export function splitExamples(bytes, dtype, number) {
  const values = new ARRAYS[dtype](bytes.buffer, bytes.byteOffset, bytes.byteLength / ARRAYS[dtype].BYTES_PER_ELEMENT);
  const size = values.length / number;
  return Array.from({ length: number }, (_, i) => values.subarray(i * size, (i + 1) * size));
}

// The values of each channel, where the channels are the last axis; a single list for a plain list of features.
export function splitChannels(values, shape) {
  const channels = shape.length > 1 ? shape[shape.length - 1] : 1;
  const steps = values.length / channels;
  return Array.from({ length: channels }, (_, channel) =>
    Array.from({ length: steps }, (_, step) => values[step * channels + channel]),
  );
}
