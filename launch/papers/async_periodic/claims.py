"""What the paper on asynchronous FL with periodic aggregation claims in words, each with the rule that decides it.

The paper prints curves without numbers. Results are in per cent and points. Combinations of a scheduling policy and a
weighting are compared by the mean over the last aggregations, since single ones fluctuate. The paper says itself that
its scheme uploads more, so comparisons at equal aggregations and at equal uploads are ours, as are FedAsync and
FedBuff. We read it as comparing at equal time; its figures and Table I are not in the text that we have, so that we do
not know their axes, nor how their FedAvg schedules. Here each policy is compared with FedAvg with the same policy.

When the rules were written: those on random scheduling with fresher updates, on fluctuation, on scheduling by frequency
and on older updates before any runs were compared. Those of section V and of the abstract came when five seeds of the
printed settings had been seen; so did FedAvg without a proximal term, whose runs are later, and the bases of gamma
below 2.

Claims are put to FedAvg as the paper defines it: section II-A has no proximal term. Eq. (8), which has one, is
introduced in section II-B "to alleviate potential model imbalance caused by asynchronous training", and section IV says
of FedAvg only that its weights were modified. FedAvg with the term of Eq. (8) is compared further.
"""

from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import Cell
from launch.papers.engine.conditions import Condition, exceeds, mean_exceeds
from launch.runs.run_records import TUNED_SUFFIX
from launch.settings.algorithms import ALGORITHMS

CASES = {"iid": "IID", "shards": "non-IID", "persistent": "non-IID, slow devices with digits of their own"}
COMPARED_CASES = ("iid", "shards")  # Figures 3 and 4
POLICIES = ("random", "significance", "frequency")
WEIGHTINGS = {"equal": "equal weights", "fresh": "fresher favoured", "old": "older favoured"}
# Where slow devices have digits of their own, with three bases of the age weights.
OLDER = {"old1.25": 1.25, "old1.5": 1.5, "old": 2.0}
FEDAVG, FEDAVG_PROXIMAL = "synchronous_plain", "synchronous"
KINDS = {
    **WEIGHTINGS,
    **{kind: f"{WEIGHTINGS['old']}, gamma {gamma:g}" for kind, gamma in OLDER.items() if kind not in WEIGHTINGS},
    FEDAVG: ALGORITHMS["fedavg"].title,
    FEDAVG_PROXIMAL: f"{ALGORITHMS['fedavg'].title} with Eq. (8)",
}
NEVER_WAITING = {algo: ALGORITHMS[algo].title for algo in ("fed_async", "buffered")}
TUNED_CASES = ("shards",)  # where settings are searched
# What is tuned on validation examples, by (policy, kind): all with as many trials.
TUNED_METHODS = {
    ("random", "fresh"): "periodic",
    ("random", FEDAVG_PROXIMAL): ALGORITHMS["fedavg"].title,
    **{("", algo): title for algo, title in NEVER_WAITING.items()},
}
TUNED_KINDS = {(policy, kind + TUNED_SUFFIX): f"{name}, tuned" for (policy, kind), name in TUNED_METHODS.items()}

LAST_ROUND = 40
TIME_BUDGET = LAST_ROUND / 4  # T_max: when an asynchronous run ends, since its periods are T_max / 4 long
NEVER_WAITING_UPDATES = 2100  # when a run of FedAsync or FedBuff ends
UPLOAD_BUDGET = 1150  # updates: fewer than an asynchronous run sends in all, LAST_ROUND aggregations of R = 30
MODEL_BYTES = 4 * 199_210  # of McMahan's 2NN at 32 bits
MODEL_BUDGET = 2600  # models, both ways together: fewer than an asynchronous run sends, about 1,190 up and 1,620 down
LAST_AGGREGATIONS = 10

FINAL, LAST_MEAN, CYCLE_MEAN, AT_TIME, AT_UPLOADS, AT_BYTES, FLUCTUATION = (
    "final", "mean_of_last", "mean_of_cycle", "at_equal_time", "at_equal_uploads", "at_equal_bytes", "fluctuation"
)  # fmt: skip
TIME, UPDATES = "time", "updates"
MEASURES = {
    FINAL: f"at aggregation {LAST_ROUND}",
    LAST_MEAN: f"mean over the last {LAST_AGGREGATIONS} aggregations",
    AT_TIME: f"at {TIME_BUDGET:g} T_max",
    AT_UPLOADS: f"after {UPLOAD_BUDGET:,} updates",
    AT_BYTES: f"after {MODEL_BUDGET:,} models both ways",
    FLUCTUATION: f"fluctuation over the last {LAST_AGGREGATIONS}",
}


def make_cell(case: str, policy: str, kind: str, metric: str = FINAL) -> Cell:
    """A result of a policy and a kind: a weighting of the asynchronous runs, or FedAvg."""
    return Cell(case, policy, kind, LAST_ROUND, metric)


def _exceeds(first: Cell, second: Cell) -> Condition:
    names = [f"{cell.setting}, {KINDS[cell.algo]}" for cell in (first, second)]
    return exceeds(first, second, f"{names[0]} {{0}} against {names[1]} {{1}}")


def _list_cells(case: str, policy: str, metric: str = FINAL) -> list[Cell]:
    return [make_cell(case, policy, kind, metric) for kind in WEIGHTINGS]


def _mean_exceeds(first: list[Cell], second: list[Cell], text: str) -> Condition:
    """As `mean_exceeds`, with a text that does not list the results, which are too many."""
    return Condition(mean_exceeds(first, second, ("", "")).terms, text, above=0)


def _beats_fedavg(case: str) -> Claim:
    conditions = tuple(
        mean_exceeds(
            _list_cells(case, policy, AT_TIME),
            [make_cell(case, policy, FEDAVG, AT_TIME)],
            (f"{policy}: {', '.join(WEIGHTINGS)}", KINDS[FEDAVG]),
        )
        for policy in POLICIES
    )
    return Claim(
        "IV",
        f'"the asynchronous FL scheme generally outperforms FedAvg", {CASES[case]}',
        f"accuracy {MEASURES[AT_TIME]}, when the asynchronous runs end: with each policy the mean over the three "
        "weightings is above FedAvg",
        conditions,
    )


MORE_FREQUENT = Claim(
    "IV",
    '"this advantage comes at the cost of more frequent local update uploading and aggregation"',
    f"{LAST_ROUND} aggregations, of up to 30 updates each, take FedAvg longer",
    tuple(
        exceeds(
            make_cell(case, "random", FEDAVG, TIME),
            make_cell(case, "random", "equal", TIME),
            f"{CASES[case]}: {KINDS[FEDAVG]} {{0}} T_max, asynchronous {{1}} T_max",
        )
        for case in COMPARED_CASES
    ),
    by_construction="the period is T_max / 4, and a round of FedAvg lasts as long as its slowest device, nearly T_max",
)


def _fresh_random_is_best(case: str) -> Claim:
    best = make_cell(case, "random", "fresh", LAST_MEAN)
    others = [cell for policy in POLICIES for cell in _list_cells(case, policy, LAST_MEAN) if cell != best]
    return Claim(
        "IV",
        f'"random scheduling and ... favoring fresher local updates shows superior performance", {CASES[case]}',
        f"accuracy, {MEASURES[LAST_MEAN]}: above each of the other eight combinations",
        tuple(_exceeds(best, other) for other in others),
    )


def _significance_fluctuates_most(case: str) -> Claim:
    cells = {policy: _list_cells(case, policy, FLUCTUATION) for policy in POLICIES}
    return Claim(
        "IV",
        f'"significance-based scheduling leads to fluctuating test performance", {CASES[case]}',
        f"{MEASURES[FLUCTUATION]} aggregations: with each weighting above random scheduling and above scheduling by "
        "frequency",
        tuple(
            _exceeds(first, second)
            for policy in ("random", "frequency")
            for first, second in zip(cells["significance"], cells[policy], strict=True)
        ),
    )


def _compare_policies(case: str, better: str, worse: str) -> Condition:
    """The mean over the weightings of a policy is above that of another."""
    names = (f"{better}: {', '.join(WEIGHTINGS)}", worse)
    return mean_exceeds(_list_cells(case, better, LAST_MEAN), _list_cells(case, worse, LAST_MEAN), names)


def _frequency_is_worst(case: str) -> Claim:
    return Claim(
        "IV",
        f'"frequency-based scheme has generally the worst performance", {CASES[case]}',
        f"accuracy, {MEASURES[LAST_MEAN]}: its mean over the three weightings is below that of both other policies",
        tuple(_compare_policies(case, policy, "frequency") for policy in ("random", "significance")),
    )


def _random_is_best(case: str) -> Claim:
    return Claim(
        "V",
        f'"random scheduling performs surprisingly better than the alternative options", {CASES[case]}',
        f"accuracy, {MEASURES[LAST_MEAN]}: its mean over the three weightings is above that of both other policies",
        tuple(_compare_policies(case, "random", policy) for policy in ("significance", "frequency")),
    )


def _random_leads_by_more(other: str) -> Condition:
    """Random scheduling's lead over another policy, mean over the weightings, is larger on non-IID data."""
    leads = [_compare_policies(case, "random", other) for case in ("shards", "iid")]
    terms = (*leads[0].terms, *((-weight, cell) for weight, cell in leads[1].terms))
    return Condition(terms, f"its lead over {other} on non-IID data minus that on IID data", above=0)


RANDOM_ESPECIALLY = Claim(
    "V",
    '"... especially under non-IID data distribution"',
    f"accuracy, {MEASURES[LAST_MEAN]}, mean over the three weightings: random scheduling leads each of the others by "
    "more on non-IID data than on IID data",
    tuple(_random_leads_by_more(other) for other in ("significance", "frequency")),
)


def _older_can_win(older: str) -> Claim:
    words = '"when slower devices possess some unique training data, favoring older updates sometimes performs better"'
    return Claim(
        "IV",
        f"{words}, gamma {OLDER[older]:g}",
        f"in the one such case that we made, random scheduling, accuracy, {MEASURES[LAST_MEAN]}: above equal weights "
        f'and above fresher favoured; gamma is one of {len(OLDER)}, which are as many tries at a "sometimes"',
        tuple(
            _exceeds(*(make_cell("persistent", "random", each, LAST_MEAN) for each in (older, kind)))
            for kind in ("equal", "fresh")
        ),
    )


def _age_aware_improves(case: str) -> Claim:
    words = "\"an appropriate 'age-aware' weighting design ... can greatly improve the learning performance\""
    return Claim(
        "abstract",
        f"{words}, {CASES[case]}",
        f"accuracy, {MEASURES[LAST_MEAN]}: with each policy, favouring fresher updates is above equal weights; the "
        "paper does not say how much is great",
        tuple(
            _exceeds(*(make_cell(case, policy, kind, LAST_MEAN) for kind in ("fresh", "equal"))) for policy in POLICIES
        ),
    )


ASYNC_CLAIMS = (
    *map(_beats_fedavg, COMPARED_CASES),
    MORE_FREQUENT,
    *(claim(case) for claim in (_fresh_random_is_best, _significance_fluctuates_most, _frequency_is_worst)
      for case in COMPARED_CASES),
    *map(_older_can_win, OLDER),
    *map(_random_is_best, COMPARED_CASES),
    RANDOM_ESPECIALLY,
    *map(_age_aware_improves, COMPARED_CASES),
)  # fmt: skip


def _beats_fedavg_at_equal(metric: str, case: str, kind: str = FEDAVG) -> Claim:
    everything = [cell for policy in POLICIES for cell in _list_cells(case, policy, metric)]
    fedavg = [make_cell(case, policy, kind, metric) for policy in POLICIES]
    lead = _mean_exceeds(everything, fedavg, f"mean of the nine combinations against {KINDS[kind]}'s three")
    return Claim("", f"{CASES[case]}, {MEASURES[metric]}: asynchronous FL is ahead of {KINDS[kind]}", "", (lead,))


def _leads(first: Cell, second: Cell, names: tuple[str, str]) -> Claim:
    """One result is above another of the same data and metric."""
    text = f"{CASES[first.dataset]}, {MEASURES[first.metric]}: {names[0]} is ahead of {names[1]}"
    return Claim("", text, "", (exceeds(first, second, f"{names[0]} {{0}}, {names[1]} {{1}}"),))


def _beats_periodic(algo: str, metric: str, case: str) -> Claim:
    cells = make_cell(case, "", algo, metric), make_cell(case, "random", "fresh", metric)
    return _leads(*cells, (NEVER_WAITING[algo], "periodic aggregation (random, fresher favoured)"))


def _beats_as_tuned(first: tuple[str, str], second: tuple[str, str], metric: str, case: str) -> Claim:
    """The first of two of TUNED_KINDS is above the second."""
    cells = [make_cell(case, *place, metric) for place in (first, second)]
    return _leads(*cells, (TUNED_KINDS[first], TUNED_KINDS[second]))


_PERIODIC, _FEDAVG, _FED_ASYNC, _BUFFERED = TUNED_KINDS
# A method is compared as tuned where its trials were scored, at TIME_BUDGET. Within MODEL_BUDGET the methods are at
# other places of their runs: FedAvg after 20 rounds, of which its trials had 10; FedAsync and FedBuff after 43 of 70;
# periodic aggregation after 36 or 37 of 40. So only the two that are at the same place are compared there.
TUNED_PAIRS = {
    (_BUFFERED, _FED_ASYNC): (AT_TIME, AT_BYTES),
    (_BUFFERED, _PERIODIC): (AT_TIME,),
    (_FED_ASYNC, _PERIODIC): (AT_TIME,),
    (_PERIODIC, _FEDAVG): (AT_TIME,),
}
ASYNC_FURTHER = (
    *(_beats_fedavg_at_equal(metric, case) for metric in (FINAL, AT_UPLOADS) for case in COMPARED_CASES),
    *(_beats_fedavg_at_equal(metric, case, FEDAVG_PROXIMAL) for metric in (AT_TIME, FINAL, AT_UPLOADS)
      for case in COMPARED_CASES),
    *(_beats_periodic(algo, metric, case) for algo in NEVER_WAITING for metric in (AT_TIME, AT_UPLOADS, AT_BYTES)
      for case in COMPARED_CASES),
    *(_beats_as_tuned(*pair, metric, case) for pair, metrics in TUNED_PAIRS.items() for metric in metrics
      for case in TUNED_CASES),
)  # fmt: skip
