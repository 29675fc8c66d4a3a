// How the page names things in words.

import { formatNumber } from "./numbers.js";

export function nameColumn(content, name) {
  return content.titles[name] ?? name;
}

// The same inside a sentence: "test RMSE".
export function nameInSentence(content, name) {
  const title = nameColumn(content, name);
  return title.charAt(0).toLowerCase() + title.slice(1);
}

export function describeTime(view) {
  if (view.at === "last") return "after the last round";
  return view.at === "best" ? "in the best round of each run" : `after round ${view.at}`;
}

export function formatDifference(value) {
  const size = Math.abs(value);
  const isTiny = size < 1e-6; // rounding, for what has six digits
  const digits = isTiny || (size >= 5e-5 && size < 10) ? size.toFixed(4) : formatNumber(size);
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${digits}`;
}

export function countSeeds(count) {
  return `${count} seed${count === 1 ? "" : "s"}`;
}

export const byId = (id) => document.getElementById(id);
