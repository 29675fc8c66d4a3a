// What the groups are compared with, seed by seed: FedAvg on the same data or, without it, the first group.
// `results.py` chooses the same baseline. A `view` is what is shown, see sections.js.

import { groupRuns } from "./groups.js";
import { formatFlag } from "./numbers.js";
import { estimatePairs, findBounds, isLowBetter, readResult, readSeedResults } from "./statistics.js";

export const LEAST_SEEDS = 3; // fewer decide nothing
const FEDAVG = "fedavg";

// The data on which several groups have a result, [{key, label, runs, groups, differing}], those of most runs first.
// Groups that share no data stand together, and `differing` are the flags in which their data differ.
export function listSplits(view) {
  const { content, runs, grouping } = view;
  const isMeasured = (group) => readSeedResults(view, group).size > 0;
  const list = (members) => groupRuns(members, grouping, content.algorithms).filter(isMeasured);
  const parts = groupRuns(runs, content.dataFlags).map((part) => ({ ...part, groups: list(part.runs), differing: [] }));
  const found = parts.filter(({ groups }) => groups.length > 1).sort((one, other) => other.runs.length - one.runs.length);
  if (found.length) return nameSplits(found, content.dataFlags);
  const differing = content.dataFlags.filter((flag) => new Set(runs.map((run) => run.flags[flag])).size > 1);
  return [{ key: "", label: "", runs, groups: list(runs), differing }];
}

// Data are called as above a run's plots; those of one name are told apart by their flags.
function nameSplits(splits, flags) {
  const names = splits.map(({ runs: [run] }) => run.heading.replace(`${run.title} on `, "").replace(/, seed [^,]*$/, ""));
  return splits.map((split, i) => {
    const twins = splits.filter((_, k) => names[k] === names[i]);
    const telling = flags.filter((flag) => new Set(twins.map(({ runs: [run] }) => run.flags[flag])).size > 1);
    const parts = telling.map((flag) => `${flag} ${formatFlag(split.runs[0].flags[flag])}`);
    return { ...split, label: [names[i], ...parts].join(", ") };
  });
}

const isFedAvg = (run) => run.flags.algo === FEDAVG;
const isCalledFedAvg = (content, run) => String(run.flags[content.experiment] ?? "").startsWith(FEDAVG);

// Whether a group is FedAvg, or at least called so.
export function areFedAvg({ content }, { runs }) {
  return runs.every((run) => isFedAvg(run) || isCalledFedAvg(content, run));
}

// FedAvg, else what is called so, else any: the group that most groups have pairs with, runs of the same seed on the
// same data. Of equals it is the one with the most seeds, the first run's first.
export function chooseBaseline(view, groups, key = "") {
  const chosen = groups.find((group) => group.key === key);
  if (chosen) return chosen;
  const { content } = view;
  const tests = [isFedAvg, (run) => isCalledFedAvg(content, run), () => true];
  const found = tests.map((test) => groups.filter((group) => group.runs.every(test))).find((each) => each.length) ?? [];
  const seeds = new Map(groups.map((group) => [group, readSeedResults(view, group)]));
  const data = [content.seed, "data_version", ...content.dataFlags];
  const listPairable = (group) => {
    const measured = group.runs.filter((run) => seeds.get(group).has(run.flags[content.seed]));
    return new Set(measured.map((run) => data.map((flag) => formatFlag(run.flags[flag])).join()));
  };
  const pairable = groups.map(listPairable);
  const countPartners = (own) => pairable.filter((others) => [...own].some((pair) => others.has(pair))).length;
  const ranks = found.map((group) => ({
    group,
    partners: countPartners(listPairable(group)),
    seeds: seeds.get(group).size,
    place: content.runs.indexOf(group.runs[0]),
  }));
  ranks.sort((one, other) => other.partners - one.partners || other.seeds - one.seeds || one.place - other.place);
  return ranks[0]?.group;
}

// The baseline of a group or a trivial row: that of its data; null for itself, and where the data are several.
export function findBaseline(splits, group) {
  const split = splits.find(({ runs }) => group.runs.every((run) => runs.some(({ name }) => name === run.name)));
  return split && split.baseline?.key !== group.key ? (split.baseline ?? null) : null;
}

// "better", "worse", "undecided" or, of equal results, "the same": of a paired difference, null for none.
export function judge(paired, metric) {
  if (!paired || paired.count < LEAST_SEEDS) return "undecided";
  const [low, high] = paired.low === null ? [paired.mean, paired.mean] : [paired.low, paired.high];
  if (low === 0 && high === 0) return "the same";
  if (low <= 0 && high >= 0) return "undecided";
  return low > 0 === !isLowBetter(metric) ? "better" : "worse";
}

export function isDecided(verdict) {
  return verdict !== "undecided";
}

// Whether differences in a metric are written in points: those of shares are.
export function isShare(metric) {
  const [least, most] = findBounds(metric);
  return least === 0 && most === 1;
}

// Each group but the baseline: [{group, paired, verdict, bytes, theirBytes}], what is decided first, the best lead first.
export function listLeads(view, { groups, baseline }) {
  const sign = isLowBetter(view.metric) ? -1 : 1;
  const lead = ({ paired }) => (paired ? sign * paired.mean : -Infinity);
  const theirBytes = averageBytes(view, baseline);
  const leads = groups
    .filter((group) => group.key !== baseline.key)
    .map((group) => {
      const paired = estimatePairs(view, group, baseline);
      return { group, paired, verdict: judge(paired, view.metric), bytes: averageBytes(view, group), theirBytes };
    });
  const order = (one, other) => isDecided(other.verdict) - isDecided(one.verdict) || lead(other) - lead(one) || 0;
  return leads.sort(order);
}

// What a run of the group sends, both ways, in the mean; up to the round at which results are taken. Null if unknown.
function averageBytes({ at }, group) {
  const sent = group.runs.map((run) => readResult(run, "total_bytes", typeof at === "number" ? at : "last")?.value);
  return sent.some((value) => value === undefined) ? null : sent.reduce((sum, value) => sum + value, 0) / sent.length;
}
