// Sums over lists of numbers, and how numbers are written. Nothing here knows of the page.

// The place of the largest value; of equal ones the first, as NumPy has it.
export function findLargest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

// Logits to probabilities that add up to 1.
export function computeSoftmax(logits) {
  const largest = logits[findLargest(logits)];
  const powers = Array.from(logits, (logit) => Math.exp(logit - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

// The value below which this share of the values lies, with straight lines between neighbours, as NumPy has it.
export function computeQuantile(values, share) {
  const sorted = Array.from(values).sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

// Stored values to inputs of the model, rounded to float32 after each step, as on a phone and in the report.
export function preprocess(stored, scale, offset) {
  const [factor, summand] = [Math.fround(scale), Math.fround(offset)];
  return Float32Array.from(stored, (value) => Math.fround(Math.fround(value * factor) + summand));
}

// A model's outputs as the page reads them: logits of classes, two of a model that has one for two classes, or numbers,
// each scaled and shifted to the unit of the labels.
export function readOutputs(outputs, { answers, outputScale, outputOffset }) {
  if (answers === "two_classes") return [0, outputs[0]];
  if (answers === "numbers") return Array.from(outputs, (value, i) => value * outputScale[i] + outputOffset[i]);
  return outputs;
}

// How far the logit of one class lies above that of another.
export function measureMargin(logits, first, second) {
  return logits[first] - logits[second];
}

export function formatBytes(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const [value, unit] = bytes < 1e6 ? [bytes / 1e3, "kB"] : [bytes / 1e6, "MB"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

export function formatPercent(share) {
  const percent = 100 * share;
  return percent > 0 && percent < 1 ? "< 1 %" : `${Math.round(percent)} %`;
}

// A time in ms, or that it is shorter than the browser's clock can tell.
export function formatTime(milliseconds, clockStep) {
  if (milliseconds < clockStep) return `< ${formatNumber(clockStep)}`;
  return milliseconds < 10 ? milliseconds.toFixed(2) : milliseconds.toFixed(0);
}

// A number as short as it can be without losing more than three digits.
export function formatNumber(value) {
  return String(Number(value.toPrecision(3)));
}
