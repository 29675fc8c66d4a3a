// Which runs are shown, and how they are grouped.

import { compareValues, formatFlag } from "./numbers.js";

// The runs that pass the filters, {flag: set of the values that are left out}, and whose name contains the text.
export function filterRuns(runs, filters, text = "") {
  const wanted = text.toLowerCase();
  return runs.filter(
    (run) =>
      run.name.toLowerCase().includes(wanted) &&
      Object.entries(filters).every(([flag, excluded]) => !excluded.has(formatFlag(run.flags[flag]))),
  );
}

// The different values of a flag, in order, as text.
export function listValues(runs, flag) {
  return [...new Set(runs.map((run) => run.flags[flag]))].sort(compareValues).map(formatFlag);
}

// The runs in groups of equal values of `flags`, [{key, label, values, runs}], in the order of the values. Runs that
// have none of the flags, as another algorithm's, form a group of their own. `titles` are those of the algorithms.
export function groupRuns(runs, flags, titles = {}) {
  const groups = new Map();
  for (const run of runs) {
    const values = flags.map((flag) => run.flags[flag]);
    const key = values.map(formatFlag).join(", ");
    if (!groups.has(key)) groups.set(key, { key, values, label: labelGroup(flags, values, titles), runs: [] });
    groups.get(key).runs.push(run);
  }
  const order = (one, other) =>
    flags.map((_, i) => compareValues(one.values[i], other.values[i])).find((sign) => sign !== 0) ?? 0;
  return [...groups.values()].sort(order);
}

// One flag's value alone; of several the names as well, but for text, which speaks for itself.
function labelGroup(flags, values, titles) {
  if (!flags.length) return "all runs";
  const shown = flags.map((flag, i) => (flag === "algo" ? (titles[values[i]] ?? values[i]) : values[i]));
  if (flags.length === 1) return formatFlag(shown[0]);
  const parts = flags.map((flag, i) => {
    const isPlain = typeof shown[i] === "string" && shown[i] !== "";
    if (shown[i] === undefined) return null;
    return isPlain ? shown[i] : `${flag.replaceAll("_", " ")} ${formatFlag(shown[i])}`;
  });
  return parts.filter((part) => part !== null).join(", ");
}

// The flags, of those given, that have several values inside a group.
export function findMixedFlags(group, flags) {
  return flags.filter((flag) => new Set(group.runs.map((run) => formatFlag(run.flags[flag]))).size > 1);
}
