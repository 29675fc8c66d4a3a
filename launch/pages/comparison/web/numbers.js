// How the page writes and orders values.

// Numbers by size, text by the alphabet, numbers first; what is missing comes last.
export function compareValues(one, other) {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  const areNumbers = [one, other].map((value) => typeof value === "number");
  if (areNumbers[0] && areNumbers[1]) return one - other;
  if (areNumbers[0] !== areNumbers[1]) return areNumbers[0] ? -1 : 1;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

// A result for a table: shares and losses with four digits after the point, large numbers grouped. Among others that are
// not whole, a whole number has digits after the point, too.
export function formatNumber(value, isWhole = Number.isInteger(value)) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (isWhole) return Math.abs(value) < 1e4 ? String(value) : value.toLocaleString("en");
  if (Math.abs(value) >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (Math.abs(value) >= 10) return value.toFixed(2);
  return value === 0 || Math.abs(value) >= 1e-3 ? value.toFixed(4) : value.toExponential(2);
}

export function formatBytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const power = value < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return power ? `${(value / 1000 ** power).toPrecision(3)} ${units[power]}` : `${value} B`;
}

export function formatSeconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 60) return `${value.toPrecision(3)} s`;
  if (value < 3600) return `${(value / 60).toPrecision(3)} min`;
  return `${(value / 3600).toPrecision(3)} h`;
}

// A flag's value as one types it: true and false, text as it is, and a word for what is empty.
export function formatFlag(value) {
  if (value === null || value === undefined) return "–";
  return value === "" ? "(empty)" : String(value);
}

export function formatInterval(estimate, format = formatNumber) {
  return estimate.low === null ? "–" : `${format(estimate.low)} to ${format(estimate.high)}`;
}
