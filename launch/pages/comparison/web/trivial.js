// Rows beside the groups that no model was trained for, as `groups.py` has them: from the runs' data alone. They
// belong to no group and win against none.

import { groupRuns } from "./groups.js";

// The rows of the metric, as groups of runs whose every round has the row's result; for each data a row of its own.
export function listTrivial({ content, runs, metric }) {
  const listKnown = (flag) => runs.map((run) => run.flags[flag]).filter((value) => value !== undefined);
  const flags = content.dataFlags.filter((flag) => new Set(listKnown(flag)).size > 1);
  const splits = groupRuns(runs, flags);
  return splits.flatMap((split) => {
    const titles = [...new Set(split.runs.flatMap((run) => Object.keys(run.trivial[metric] ?? {})))];
    return titles.map((title) => {
      const known = split.runs.filter((run) => run.trivial[metric]?.[title] !== undefined);
      const members = known.map((run) => ({ ...run, columns: { round: run.columns.round, [metric]: run.trivial[metric][title] } }));
      const label = splits.length === 1 ? title : `${title}, ${split.label}`;
      return { key: `trivial: ${label}`, values: [label], title, label, runs: members, isTrivial: true };
    });
  });
}

// Whether all runs of a group are of an algorithm that others are compared with, such as local training.
export function isReference(content, group) {
  return !group.isTrivial && group.runs.every((run) => content.references.includes(run.flags.algo));
}
