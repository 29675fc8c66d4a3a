"""What the paper on asynchronous FL with periodic aggregation claims in words, each with the rule that decides it.

The paper prints curves without numbers. Results are in per cent and points. Combinations of a scheduling policy and a
weighting are compared by the mean over the last aggregations, since single ones fluctuate. The paper says itself that
its scheme uploads more, so comparisons at equal aggregations and at equal uploads are ours, as are FedAsync and
FedBuff. We read it as comparing at equal time; its figures and Table I are not in the text that we have, so that we
do not know their axes, nor how their FedAvg schedules. There are two readings, of which each is a row: FedAvg has the
policy of the asynchronous runs, which it applies to all devices when they have trained (section II-A); or it is one
curve for all policies, of devices drawn at random. If these are drawn before they train, as in McMahan et al., they are
the same, and the round ends with the slowest of 30 instead of 100. It lasts 30/31 of T_max in the mean, not 100/101:
at 10 T_max ten rounds are done, either way, so that the runs of random scheduling are those of both.

When the rules were written: those on random scheduling with fresher updates, on fluctuation, on scheduling by
frequency and on older updates before any runs were compared. Those of section V and of the abstract came when five
seeds of the printed settings had been seen; so did FedAvg without a proximal term, whose runs are later, and the
bases of gamma below 2. The abstract's claims on scheduling and on stragglers came when all seeds had been seen.

Which seeds decide: on non-IID data fifteen were added to the first five because these left claims undecided. So claims
and comparisons of settings that had been looked at are put to the fifteen alone; async_first_runs.csv has the verdicts
of the five. IID data got no further seeds. What is tuned was first run on all twenty.

Claims are put to FedAvg as the paper defines it: section II-A has no proximal term. Eq. (8), which has one, is
introduced in section II-B "to alleviate potential model imbalance caused by asynchronous training", and section IV
says of FedAvg only that its weights were modified. FedAvg with the term of Eq. (8) is compared further.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from reproductions.engine.claim_rows import Book, Claim
from reproductions.engine.comparisons import Results, Sum, mean

CASES = {"iid": "IID", "shards": "non-IID"}  # Figures 3 and 4
ALGOS = {
    "equal": "equal weights",
    "fresh": "fresher favoured",
    "old": "older favoured",
    "old1.25": "older favoured, gamma 1.25",
    "old1.5": "older favoured, gamma 1.5",
    "synchronous_plain": "FedAvg",
    "synchronous": "FedAvg with Eq. (8)",
    "fed_async": "FedAsync",
    "buffered": "FedBuff",
    "fresh_tuned": "periodic, tuned",
    "synchronous_tuned": "FedAvg, tuned",
    "fed_async_tuned": "FedAsync, tuned",
    "buffered_tuned": "FedBuff, tuned",
}
METRICS = {
    "final": "at aggregation 40",
    "mean_of_last": "mean over the last 10 aggregations",
    "at_equal_time": "at 10 T_max",
    "at_equal_uploads": "after 1,150 updates",
    "at_equal_bytes": "after 2,600 models both ways",
    "fluctuation": "fluctuation over the last 10",
    "time": "time",
}
DATA = {**CASES, "persistent": "non-IID, slow devices with digits of their own"}
BOOK = Book(
    at={"round": 40, "metric": "mean_of_last"},
    names={"dataset": DATA, "algo": ALGOS, "metric": METRICS},
    texts={2: "{0.setting}, {0.algo} {0} against {1.setting}, {1.algo} {1}"},
    seeds={"shards": range(5, 20), "persistent": range(5, 20)},
)
POLICIES = ("random", "significance", "frequency")
WEIGHTINGS = ("equal", "fresh", "old")
FEDAVG = ("synchronous_plain",)
IN_THE_MEAN = "{0.setting}: equal, fresh, old {0}, {1}, {2} against {3.setting} {3}, {4}, {5}"
AGAINST_FEDAVG = "{0.setting}: equal, fresh, old {0}, {1}, {2} against {3.algo} {3}"
PERIODIC = "periodic aggregation (random, fresher favoured)"
LAST = "accuracy, mean over the last 10 aggregations"


def average(runs: Results, policy: str, **fields: str) -> Sum:
    """The mean over the three weightings of a policy."""
    return mean(runs(weighting, setting=policy, **fields) for weighting in WEIGHTINGS)


def lead(runs: Results, rival: str, dataset: str) -> Sum:
    """By how much random scheduling is ahead of another policy."""
    return average(runs, "random", dataset=dataset) - average(runs, rival, dataset=dataset)


def gain(runs: Results, algos: Sequence[str]) -> Sum:
    """What scheduling by significance gains on random scheduling, in the mean over these."""
    by_policy = [mean(runs(algo, setting=policy) for algo in algos) for policy in ("significance", "random")]
    return by_policy[0] - by_policy[1]


def per_case(section: str, words: str, *rest: Any, **more: Any) -> Iterator[Claim]:
    """A claim on IID data and one on non-IID data, whose name stands in the words as {data}."""
    for case, data in CASES.items():
        yield BOOK.claim(section, words.format(data=data), *rest, dataset=case, **more)


claim, further = BOOK.claim, BOOK.further
CLAIMS = (
    *per_case(
        "IV",
        '"the asynchronous FL scheme generally outperforms FedAvg", {data}, FedAvg with the same policy',
        "accuracy at 10 T_max, when the asynchronous runs end: with each policy the mean over the three weightings "
        "is above FedAvg with the same policy, which schedules when all devices have trained",
        lambda runs: [average(runs, policy) > runs("synchronous_plain", setting=policy) for policy in POLICIES],
        metric="at_equal_time",
        text=AGAINST_FEDAVG,
    ),
    *per_case(  # the other reading of how FedAvg schedules
        "IV",
        '"the asynchronous FL scheme generally outperforms FedAvg", {data}, FedAvg with a random cohort',
        "the same, above one FedAvg for all policies, whose 30 devices a round are drawn at random, before or after "
        "they train",
        lambda runs: [average(runs, policy) > runs("synchronous_plain", setting="random") for policy in POLICIES],
        metric="at_equal_time",
        text=AGAINST_FEDAVG,
    ),
    claim(
        "IV",
        '"this advantage comes at the cost of more frequent local update uploading and aggregation"',
        "40 aggregations, of up to 30 updates each, take FedAvg longer",
        lambda runs: [runs("synchronous_plain", dataset=case) > runs("equal", dataset=case) for case in CASES],
        setting="random",
        metric="time",
        text="{0.dataset}: {0.algo} {0} T_max, asynchronous {1} T_max",
        by_construction="the period is T_max / 4, and a round of FedAvg lasts as long as its slowest device, nearly "
        "T_max",
    ),
    *per_case(
        "IV",
        '"random scheduling and ... favoring fresher local updates shows superior performance", {data}',
        f"{LAST}: above each of the other eight combinations",
        lambda runs: [
            runs("fresh", setting="random") > runs(weighting, setting=policy)
            for policy in POLICIES
            for weighting in WEIGHTINGS
            if (policy, weighting) != ("random", "fresh")
        ],
    ),
    *per_case(
        "IV",
        '"significance-based scheduling leads to fluctuating test performance", {data}',
        "fluctuation over the last 10 aggregations: with each weighting above random scheduling and above "
        "scheduling by frequency",
        lambda runs: [
            runs(weighting, setting="significance") > runs(weighting, setting=other)
            for other in ("random", "frequency")
            for weighting in WEIGHTINGS
        ],
        metric="fluctuation",
    ),
    *per_case(
        "IV",
        '"frequency-based scheme has generally the worst performance", {data}',
        f"{LAST}: its mean over the three weightings is below that of both other policies",
        lambda runs: [average(runs, better) > average(runs, "frequency") for better in POLICIES[:2]],
        text=IN_THE_MEAN,
    ),
    *(
        claim(
            "IV",
            '"when slower devices possess some unique training data, favoring older updates sometimes performs '
            f'better", gamma {gamma}',
            f"in the one such case that we made, random scheduling, {LAST}: above equal weights and above fresher "
            'favoured; gamma is one of 3, which are as many tries at a "sometimes"',
            lambda runs: [runs(older) > runs(other) for other in ("equal", "fresh")],
            dataset="persistent",
            setting="random",
        )
        for older, gamma in {"old1.25": "1.25", "old1.5": "1.5", "old": "2"}.items()
    ),
    *per_case(
        "V",
        '"random scheduling performs surprisingly better than the alternative options", {data}',
        f"{LAST}: its mean over the three weightings is above that of both other policies",
        lambda runs: [average(runs, "random") > average(runs, worse) for worse in POLICIES[1:]],
        text=IN_THE_MEAN,
    ),
    claim(
        "V",
        '"... especially under non-IID data distribution"',
        f"{LAST}, mean over the three weightings: random scheduling leads each of the others by more on non-IID data "
        "than on IID data",
        lambda runs: [
            (lead(runs, other, "shards") > lead(runs, other, "iid")).told(
                f"its lead over {other} on non-IID data minus that on IID data"
            )
            for other in ("significance", "frequency")
        ],
        seeds=range(5),  # which alone ran both
    ),
    *per_case(
        "abstract",
        """"an appropriate 'age-aware' weighting design ... can greatly improve the learning performance", """
        "{data}",
        f"{LAST}: with each policy, favouring fresher updates is above equal weights; the paper does not say how "
        "much is great",
        lambda runs: [runs("fresh", setting=policy) > runs("equal", setting=policy) for policy in POLICIES],
    ),
    # "Different" has no side: the rule has that of the means, and the interval is two-sided.
    *(
        claim(
            "abstract",
            '"the scheduling and aggregation design for asynchronous FL can be rather different from the synchronous '
            f'case", {CASES[case]}',
            f"{LAST}: what scheduling by significance gains on random scheduling, in the mean over the three "
            f"weightings, is another than in FedAvg, here {side}; the interval is two-sided",
            lambda runs: gain(runs, more) > gain(runs, less),
            dataset=case,
            text=f"what significance gains on random scheduling, {compared}",
        )
        for case, side, compared, more, less in (
            ("iid", "less", "in FedAvg minus in asynchronous FL", FEDAVG, WEIGHTINGS),
            ("shards", "more", "in asynchronous FL minus in FedAvg", WEIGHTINGS, FEDAVG),
        )
    ),
    *per_case(
        "abstract",
        '"a norm-based significance-aware scheduling policy might not be efficient in an asynchronous FL setting", '
        "{data}",
        f"{LAST}: its mean over the three weightings is below that of random scheduling, which looks at no updates; "
        "section V says as much of both other policies",
        lambda runs: average(runs, "random") > average(runs, "significance"),
        text=IN_THE_MEAN,
    ),
    claim(
        "abstract",
        '"periodic aggregation to eliminate the straggler issue in FL systems"',
        "no aggregation waits for a slow device, and none loses its work",
        by_construction="the server aggregates every T_max / 4, whoever is ready; the others go on undisturbed "
        "(section II-B). That their updates are old is a cost, which the claims on weights are about",
    ),
)
# A method is compared as tuned where its trials were scored, at 10 T_max. Within 2,600 models the methods are at other
# places of their runs: FedAvg after 20 rounds, of which its trials had 10; FedAsync and FedBuff after 43 of 70;
# periodic aggregation after 36 or 37 of 40. So only the two that are at the same place are compared there.
TUNED = {"dataset": "shards", "text": "{0.algo} {0}, {1.algo} {1}", "seeds": range(20)}
FURTHER = (
    *(
        further(
            f"{CASES[case]}, {METRICS[metric]}: asynchronous FL is ahead of {ALGOS[fedavg]}",
            lambda runs: (
                mean(runs(weighting, setting=policy) for policy in POLICIES for weighting in WEIGHTINGS)
                > mean(runs(fedavg, setting=policy) for policy in POLICIES)
            ),
            dataset=case,
            metric=metric,
            text="mean of the nine combinations against {9.algo}'s three",
        )
        for fedavg, metrics in (
            ("synchronous_plain", ("final", "at_equal_uploads")),
            ("synchronous", ("at_equal_time", "final", "at_equal_uploads")),
        )
        for metric in metrics
        for case in CASES
    ),
    *(
        further(
            f"{CASES[case]}, {METRICS[metric]}: {ALGOS[algo]} is ahead of {PERIODIC}",
            lambda runs: runs(algo, setting="") > runs("fresh", setting="random"),
            dataset=case,
            metric=metric,
            text=f"{{0.algo}} {{0}}, {PERIODIC} {{1}}",
        )
        for algo in ("fed_async", "buffered")
        for metric in ("at_equal_time", "at_equal_uploads", "at_equal_bytes")
        for case in CASES
    ),
    *(
        further(
            f"non-IID, {METRICS[metric]}: FedBuff, tuned is ahead of FedAsync, tuned",
            lambda runs: runs("buffered_tuned") > runs("fed_async_tuned"),
            **{**TUNED, "setting": "", "metric": metric},
        )
        for metric in ("at_equal_time", "at_equal_bytes")
    ),
    *(
        further(
            f"non-IID, {METRICS['at_equal_time']}: {ALGOS[first]} is ahead of periodic, tuned",
            lambda runs: runs(first, setting="") > runs("fresh_tuned", setting="random"),
            **{**TUNED, "metric": "at_equal_time"},
        )
        for first in ("buffered_tuned", "fed_async_tuned")
    ),
    further(
        f"non-IID, {METRICS['at_equal_time']}: periodic, tuned is ahead of FedAvg, tuned",
        lambda runs: runs("fresh_tuned") > runs("synchronous_tuned"),
        **{**TUNED, "setting": "random", "metric": "at_equal_time"},
    ),
)
