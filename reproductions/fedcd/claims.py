"""What the FedCD paper claims in its words, each with the rule that decides it; section numbers are the paper's.

Accuracies are in per cent, changes in points; the measures are those of `reproductions.fedcd.measures`. The rules and
their thresholds are ours and were written before any runs were compared, but for four that were changed later. Three
after the first runs of the small size and before all others: FedCD's convergence is weighed against FedAvg's, late
swings are of the same rounds in long runs, and what a run spends without convergence counts as a bound. And one before
any hypergeometric runs but one seed of the small size: Figure 5 counts archetypes that converge. Accuracies by
archetype are means over the last rounds, since those of FedAvg swing from round to round.

After all runs, verdicts that had spoken both for the paper and against it became "not comparable": those of the small
size at a constant rate on rounds and sizes of changes, and those of smaller sizes on how many models are left.
"""

import functools
from collections.abc import Iterator
from typing import Any

from reproductions.engine.claim_rows import Book, Claim
from reproductions.fedcd.measures import AXES, BASE, COMPARED_ROUNDS, HIERARCHICAL, HYPERGEOMETRIC, NAMES

LAST = "mean over rounds 36 to 45"
LAST_HYPERGEOMETRIC = "mean over rounds 71 to 80"
ROUNDS = "rounds to convergence, as defined above the tables"
AT_THE_END = "a run without convergence counts as one that has it in the round after them"
SAME_RATES = """the rates are the same where clones share the schedule; in the medium and the full size they begin it \
anew, and train at the first rate where FedAvg's has fallen"""
WHERE_RUNS_END = """What a run without convergence spends in all its rounds, of FedAvg's in 300 at most, stands for \
convergence, which takes more. The seed is a tie, shown as "never", if neither converges; and if one run alone does, \
but after the last round of the other, or for no less than the other has spent. But 300 rounds of FedAvg always count, \
as in the paper"""
NO_SUCH_RUN = """where a run has converged is our own rule, and these sizes are smaller than the paper's, so that \
their rounds cannot be held against the printed number (the authors print a run of hierarchical archetypes, which \
converges at round 29 by this rule, and none of these)"""
CONSTANT_RATE = """the small size trains at a constant learning rate, at which neither algorithm comes to rest: a \
round, or a size of changes, cannot be held against the printed one, of a rate that falls in the authors' code"""
OTHER_SIZE = """how many models are left depends on the images that they are scored by and on the network, of which \
these sizes have fewer and a smaller one: the number cannot be held against the printed one"""
LATER_MARGIN = "a margin set after the runs; any below twice FedAvg's says the same"
CONVERGES = f"""and fewer than FedAvg's with the same schedule, since steps that become small calm any algorithm \
({SAME_RATES}). For the second, both are looked at for the rounds that FedCD's experiment has, and {AT_THE_END}. \
Without runs of FedAvg nothing is reproduced"""
BITS = "{0.setting} {0}, 32 bits {1}"
BOTH = "rounds to convergence or past the last: {0.algo} {0}, {1.algo} {1}"
NOT_COMPARABLE_IN = ("cpu", "authors_small", "authors", "authors_full")
AT_CONSTANT_RATE = {"not_comparable": CONSTANT_RATE, "not_comparable_in": ("cpu",)}
IN_OTHER_SIZES = {"not_comparable": OTHER_SIZE, "not_comparable_in": ("cpu", "authors_small", "authors")}
NOT_PRINTED = {"not_comparable": NO_SUCH_RUN, "not_comparable_in": NOT_COMPARABLE_IN}
CONSTRUCTED_IN = ("cpu", "paper")  # which delete below the best, not below the mean
SETTINGS = {BASE: "as printed"} | AXES["bits"] | AXES["bias"] | AXES["further"]  # BASE: U(0.6, 0.7) and 32 bits
SCORES = {"scores1": "one accuracy", "scores5": "five accuracies"}
BOOK = Book(
    at={"dataset": HIERARCHICAL, "setting": BASE, "round": 0},  # the round is part of the metric
    names={"dataset": {data: data for data in COMPARED_ROUNDS}, "setting": SETTINGS | SCORES, "algo": NAMES},
    texts={1: "points {0}", 2: "{0.algo} {0} against {1.algo} {1}"},
)
claim, further = BOOK.claim, BOOK.further
section_3_2, section_3_5, section_3_6 = (functools.partial(claim, section) for section in ("3.2", "3.5", "3.6"))
section_3_3 = functools.partial(claim, "3.3", dataset=HYPERGEOMETRIC)
section_3_4 = functools.partial(claim, "3.4", text=BITS)


def per_data(section: str, words: str, *rest: Any, **more: Any) -> Iterator[Claim]:
    """A claim on each kind of archetypes, with which its words end."""
    for data in COMPARED_ROUNDS:
        yield claim(section, f"{words}, {data} archetypes", *rest, dataset=data, **more)


def converges_by(last: int, section: str, words: str, data: str) -> Claim:
    """A claim that FedCD converges by a round, which must be sooner than FedAvg does."""
    return claim(
        section,
        f"{words}, {data} archetypes",
        f"{ROUNDS}, at most {last}; {CONVERGES}",
        lambda runs: [
            (runs("fedcd", "convergence") <= last).told("rounds to convergence {0}"),
            (runs("fedcd", "convergence_or_end") - runs("fedavg", "convergence_or_end") < 0).told(BOTH),
        ],
        dataset=data,
        **(NOT_PRINTED if data == HYPERGEOMETRIC else AT_CONSTANT_RATE),
    )


CLAIMS = (
    # Of hierarchical archetypes section 3.2 says the same in its own words, which are claims further down.
    claim(
        "abstract",
        '"FedCD achieves higher accuracy ... compared to a FedAvg baseline", hypergeometric archetypes',
        f"mean accuracy of the devices, {LAST_HYPERGEOMETRIC}",
        lambda runs: runs("fedcd", "mean_of_last") > runs("fedavg", "mean_of_last"),
        dataset=HYPERGEOMETRIC,
    ),
    claim(
        "abstract",
        '"FedCD achieves ... faster convergence compared to a FedAvg baseline", hypergeometric archetypes',
        f"{ROUNDS}, fewer than FedAvg's with the same schedule ({SAME_RATES}), both looked at for the rounds that "
        f"FedCD's experiment has; {AT_THE_END}",
        lambda runs: (runs("fedcd", "convergence_or_end") - runs("fedavg", "convergence_or_end") < 0).told(BOTH),
        dataset=HYPERGEOMETRIC,
    ),
    *per_data(
        "abstract",
        '"minimal computation, communication, and storage overheads"',
        "in the rounds compared: seconds and megabytes a round at most a tenth above FedAvg's, and at most 33 models "
        f"on the 30 devices, where FedAvg has 30 ({LATER_MARGIN})",
        lambda runs: [
            (runs("fedcd", "s_per_round_ratio") <= 1.1).told("seconds a round, over FedAvg's: {0}"),
            (runs("fedcd", "mb_per_round_ratio") <= 1.1).told("MB a round, over FedAvg's: {0}"),
            (runs("fedcd", "mean_active_models") <= 33).told("models on all devices {0}"),
        ],
    ),
    *per_data(
        "2",
        '"minimal communication and on-device memory overheads after convergence"',
        f"the same of megabytes and models in the last 10 of the rounds compared ({LATER_MARGIN})",
        lambda runs: [
            (runs("fedcd", "last_mb_per_round_ratio") <= 1.1).told("MB a round, over FedAvg's: {0}"),
            (runs("fedcd", "last_active_models") <= 33).told("models on all devices {0}"),
        ],
    ),
    claim(
        "2",
        """"a normalized average of the l = 3 most recent rounds' validation accuracy results in the highest """
        'performance"',
        f"accuracy, {LAST}: scores of three accuracies above those of the latest alone, and of five",
        lambda runs: [runs("fedcd") > runs("fedcd", setting=scores) for scores in SCORES],
        metric="mean_of_last",
        text="three accuracies {0}, {1.setting} {1}",
    ),
    claim(
        "2",
        'that average is "robust to oscillation"',
        "mean size of the change of a device's accuracy, rounds 10 to 45: less than with scores of the latest alone",
        lambda runs: runs("fedcd", "change") < runs("fedcd", "change", setting="scores1"),
        text="three accuracies {0}, {1.setting} {1}",
    ),
    section_3_2(
        '"FedCD is significantly more accurate on all archetypes than FedAvg", hierarchical archetypes',
        f"accuracy of each of the ten archetypes, {LAST}",
        lambda runs: [
            (runs("fedcd", f"archetype_{k}") > runs("fedavg", f"archetype_{k}")).told(f"archetype {k}: {BOOK.texts[2]}")
            for k in range(10)
        ],
    ),
    section_3_2(
        '"The accuracy oscillations ... in FedCD stop by round 10", hierarchical archetypes',
        "size of the change of a meta-archetype's mean accuracy from the round before, mean over both and over rounds "
        "11 to 45, at most 5 points; and less than FedAvg's over the same rounds, since steps that become small calm "
        f"any algorithm ({SAME_RATES})",
        lambda runs: [runs("fedcd", "swing") <= 5, runs("fedavg", "swing") > runs("fedcd", "swing")],
        **AT_CONSTANT_RATE,
    ),
    section_3_2(
        '"accuracy under FedAvg continues to oscillate past round 40", hierarchical archetypes',
        "the same of FedAvg from round 41 to 45, in the medium size to 60 and in the full one to 53, however long a "
        "run is, above 5 points",
        lambda runs: runs("fedavg", "late_swing") > 5,
        **AT_CONSTANT_RATE,
    ),
    claim(
        "3.2, Figure 2",
        '"change in round-to-round performance of FedCD versus FedAvg": FedCD\'s is smaller, hierarchical archetypes',
        "mean size of the change of a device's accuracy, rounds 10 to 45",
        lambda runs: runs("fedavg", "change") > runs("fedcd", "change"),
    ),
    converges_by(35, "3.2", '"FedCD converges relatively quickly (by round 35)"', HIERARCHICAL),
    section_3_2(
        '"FedAvg failed to converge within 150 training rounds", hierarchical archetypes',
        f"{ROUNDS}, of a run's first 150 rounds; only runs that are as long count",
        lambda runs: runs("fedavg", "convergence_150") > 150,
        text="rounds to convergence, of the first 150, {0}",
        **AT_CONSTANT_RATE,
    ),
    section_3_2(
        '"meta-archetype 0 ... performs worse than meta-archetype 1" under FedCD',
        f"mean accuracy of its five archetypes, {LAST}",
        lambda runs: runs("fedcd", "meta_1") > runs("fedcd", "meta_0"),
        text="meta-archetype 1 {0} against meta-archetype 0 {1}",
    ),
    converges_by(45, "3.3", '"the FedCD algorithm converges quickly (by round 45)"', HYPERGEOMETRIC),
    claim(
        "3.3, Figure 5",
        '"most archetypes converge under FedCD, many archetypes under FedAvg continue to oscillate", hypergeometric '
        "archetypes",
        "archetypes, of 6, whose mean accuracy converges within 80 rounds, by the rule above the tables for it and its "
        "own changes: at least 4 under FedCD, and more than under FedAvg",
        lambda runs: [(runs("fedcd") >= 4).told("archetypes {0}"), runs("fedcd") > runs("fedavg")],
        dataset=HYPERGEOMETRIC,
        metric="converged",
        **AT_CONSTANT_RATE,
    ),
    section_3_3(
        '"archetypes with more skewed probability distributions (... 0, 5) achieve higher accuracy than the central '
        'archetypes (... 2, 3)" under FedCD',
        f"mean accuracy of the two, {LAST_HYPERGEOMETRIC}",
        lambda runs: (runs("fedcd", "outer") > runs("fedcd", "central")).told("outer {0} against central {1}"),
    ),
    section_3_3(
        '"FedAvg performs better ... on the central archetypes" than on the skewed ones',
        f"mean accuracy of the two, {LAST_HYPERGEOMETRIC}",
        lambda runs: (runs("fedavg", "central") > runs("fedavg", "outer")).told("central {0} against outer {1}"),
    ),
    section_3_3(
        '"FedAvg ... converges faster on the central archetypes" than on the skewed ones',
        "rounds to convergence of the mean accuracy of the two, by the definition above the tables, with the changes "
        "of that mean, within the 80 rounds compared: fewer. If neither converges, the seed is a tie",
        lambda runs: runs("fedavg", "convergence_central") - runs("fedavg", "convergence_outer") < 0,
        text="rounds to convergence: central {0}, outer {1}",
    ),
    section_3_4(
        '"different levels of quantization had no significant effect on model performance"',
        f"accuracy with 8 and 4 bits, {LAST}, minus that with 32 bits and the same seed: the whole interval lies "
        "within 2 points of 0, on either side",
        lambda runs: [(runs("fedcd", setting=bits) - runs("fedcd")).between(-2, 2) for bits in AXES["bits"]],
        metric="mean_of_last",
    ),
    section_3_4(
        '"different levels of quantization ... only slightly impacted the time to convergence"',
        "rounds to convergence with 8 and 4 bits minus those with 32 bits and the same seed: the whole interval lies "
        "within 5 rounds of 0. If neither converges, the seed is a tie",
        lambda runs: [(runs("fedcd", setting=bits) - runs("fedcd")).between(-5, 5) for bits in AXES["bits"]],
        metric="convergence",
    ),
    section_3_4(
        '"a single model per device, which is similarly insensitive to quantization as the FedAvg global model"',
        f"FedAvg's accuracy with 8 and 4 bits, {LAST}, minus that with 32 bits and the same seed: the whole interval "
        "lies within 2 points of 0. (FedCD's is asked for two claims before)",
        lambda runs: [(runs("fedavg", setting=bits) - runs("fedavg")).between(-2, 2) for bits in AXES["bits"]],
        metric="mean_of_last",
    ),
    section_3_5(
        '"after l rounds of cloning, there will exist at most 2^l global models", l = 4',
        "the most models that are alive after any of rounds 1 to 45, at most 16",
        lambda runs: (runs("fedcd", "most_live_models") <= 16).told("models {0}"),
        by_construction="training begins with one model, and each milestone at most doubles the models",
    ),
    section_3_5(
        '"after 4 rounds of cloning, 10 out of 16 models were deleted from all devices"',
        "at most 6 models are left at round 45",
        lambda runs: (runs("fedcd", "live_models") <= 6).told("models left {0}"),
        **IN_OTHER_SIZES,
    ),
    section_3_5(
        '"after the first cloning milestone at round 5, the devices segregate by meta-archetype"',
        "share of the rounds 6 to 45 in which two or more models are preferred, and none by devices of both "
        "meta-archetypes, at least 80 %. FedAvg has one model and no such share. Chance is no rival: if 30 devices "
        "tossed coins between two models, the meta-archetypes would part in 2 of 2^30 rounds",
        lambda runs: (runs("fedcd", "separation") >= 80).told("per cent of the rounds {0}"),
    ),
    section_3_5(
        '"Subsequent cloning rounds have a limited effect"',
        f"FedCD's accuracy, {LAST}, with all milestones minus that with the first alone and the same seed: the whole "
        "interval lies within 2 points of 0",
        lambda runs: (runs("fedcd") - runs("fedcd", setting="1milestone")).between(-2, 2),
        metric="mean_of_last",
        text="all milestones {0}, the first alone {1}",
    ),
    section_3_5(
        '"the preferred model of individual archetypes oscillates between models 0 and 1 and models 4 and 5"',
        "archetypes whose preferred model, that of most of their devices, comes back in rounds 6 to 45 to one that "
        "they had left: at least 6 of 10",
        lambda runs: (runs("fedcd", "returning") >= 6).told("archetypes {0}"),
    ),
    section_3_6(
        '"the number of active models initially increases during the cloning rounds ... and drops during the '
        'subsequent rounds"',
        "all devices' active models: the most of rounds 1 to 45 are more than those at round 45",
        lambda runs: runs("fedcd", "peak_active_models") > runs("fedcd", "active_models"),
        text="most {0} against at the end {1}",
        by_construction="after round 15 every device has four models, since Eq. (4) spares its two best and the second "
        "milestone doubles them; in the end it has two at most, as the next claim says",
        constructed_in=CONSTRUCTED_IN,
    ),
    section_3_6(
        '"In the end, each of the 30 devices update at most two active models"',
        "the most that any device has at round 45, at most 2",
        lambda runs: (runs("fedcd", "max_active_models") <= 2).told("most on a device {0}"),
        by_construction="Eq. (4) deletes the lowest of three or more models after every round, unless all of a "
        "device's scores are exactly equal, and 15 rounds follow the last milestone",
        constructed_in=CONSTRUCTED_IN,
    ),
    section_3_6(
        '"In the end ... only a total of 6 models were preferred by any given device"',
        "models that some device prefers at round 45, at most 6",
        lambda runs: (runs("fedcd", "preferred_models") <= 6).told("models {0}"),
        **IN_OTHER_SIZES,
    ),
    section_3_6(
        '"as the bias decreases ... devices tend to maintain multiple models for a larger number of rounds"',
        "all devices' active models, mean over the rounds 31 to 45: with bias 0.2 more than with 0.8",
        lambda runs: runs("fedcd", setting="bias0.2") > runs("fedcd", setting="bias0.8"),
        metric="late_active_models",
        text="{0.setting} {0} against {1.setting} {1}",
    ),
    section_3_6(
        '"As the bias ... increases ..., devices of similar archetypes converge to similar models faster"',
        "share of archetypes and rounds 6 to 45 in which all devices of an archetype prefer the same model: with bias "
        "0.8 more than with 0.2",
        lambda runs: runs("fedcd", setting="bias0.8") > runs("fedcd", setting="bias0.2"),
        metric="agreement",
        text="per cent: {0.setting} {0} against {1.setting} {1}",
    ),
    section_3_6(
        '"the average standard deviation over model scores approaches 0 ... for all levels of bias"',
        "mean over the rounds 41 to 45 at most 0.05, with each bias; a device with one model counts as 0",
        lambda runs: [runs("fedcd", "score_deviation", setting=bias) <= 0.05 for bias in AXES["bias"]],
        text="{0.setting}: {0}",
    ),
    converges_by(45, "Table 1", '"Rounds till Convergence": FedCD 45', HIERARCHICAL),
    converges_by(50, "Table 1", '"Rounds till Convergence": FedCD 50', HYPERGEOMETRIC),
    *per_data(
        "Table 1",
        '"FedAvg was capped at 300 rounds of training, since it had not converged by then"',
        f"{ROUNDS}, of a run's first 300 rounds; only runs that are as long count",
        lambda runs: runs("fedavg", "convergence_300") > 300,
        text="rounds to convergence, of the first 300, {0}",
        **AT_CONSTANT_RATE,
    ),
    *per_data(
        "Table 1",
        """"wall-clock time ... till convergence": FedCD's is below FedAvg's""",
        f"real seconds of training to convergence, of which the paper prints the ratio. {WHERE_RUNS_END}",
        lambda runs: runs("fedcd", "real_s") - runs("fedavg", "real_s") < 0,
        text="time to convergence: {0.algo} {0}, {1.algo} {1}",
    ),
    *per_data(
        "2.1",
        """"faster convergence leads to reduced communication cost": below FedAvg's""",
        f"megabytes in both directions to convergence, which the paper does not print. {WHERE_RUNS_END}",
        lambda runs: runs("fedcd", "megabytes") - runs("fedavg", "megabytes") < 0,
        text="megabytes to convergence: {0.algo} {0}, {1.algo} {1}",
    ),
)
# Our own comparisons of FedCD with FedAvg, which the paper does not claim. Thresholds and rounds were set before the
# runs of the authors' training were made, but for those of the last comparison.
FURTHER = (
    further(
        "at round 45 FedCD is more than 15 points above FedAvg, hierarchical archetypes",
        lambda runs: runs("fedcd", "final") > runs("fedavg", "final") + 15,
        "mean accuracy of the devices",
        text="FedCD {0}, FedAvg {1}",
    ),
    further(
        "the same over the last 10 rounds",
        lambda runs: runs("fedcd", "mean_of_last") > runs("fedavg", "mean_of_last") + 15,
        "mean accuracy of the devices",
        text="FedCD {0}, FedAvg {1}",
    ),
    further(
        "at round 45 FedCD with 8 bits is within 2 points of FedCD with 32",
        lambda runs: (runs("fedcd", "final", setting="8bits") - runs("fedcd", "final")).between(-2, 2),
        "mean accuracy of the devices",
        text=BITS,
    ),
    # FedCD's calm alone would say little: see SAME_RATES.
    further(
        "in rounds 51 to 60 a device's accuracy changes by at most 5 points a round under FedCD, and by more under "
        "FedAvg, hierarchical archetypes",
        lambda runs: [runs("fedcd") <= 5, runs("fedavg") > runs("fedcd")],
        "mean over devices and rounds; both must hold",
        metric="late_change",
    ),
    further(  # clones that begin the rates anew train at the first one where FedAvg is past its first step down
        "with one schedule of learning rates for all models, a device's accuracy changes less under FedCD than under "
        "FedAvg in rounds 10 to 45, hierarchical archetypes",
        lambda runs: runs("fedavg", "change") > runs("fedcd", "change", setting="shared"),
        "mean over devices and rounds",
    ),
    further(
        "with that schedule, the same over the last 10 rounds",
        lambda runs: runs("fedavg", "last_change") > runs("fedcd", "last_change", setting="shared"),
        "mean over devices and rounds",
    ),
    further(
        "with that schedule, FedCD converges in fewer of the first 45 rounds than FedAvg, hierarchical archetypes",
        lambda runs: (runs("fedcd", setting="shared") - runs("fedavg") < 0).told(BOTH),
        f"{ROUNDS}; {AT_THE_END}",
        metric="convergence_or_end_45",
    ),
    further(
        "from the first milestone on, devices have more active models with a bias of 0.2 than with 0.8, hierarchical "
        "archetypes",
        lambda runs: runs("fedcd", setting="bias0.2") > runs("fedcd", setting="bias0.8"),
        "all devices' active models, mean over the rounds 6 to 45; these rounds were chosen after the runs, since the "
        "claim looks only at those after the last milestone",
        metric="cloned_active_models",
        text="{0.setting} {0}, {1.setting} {1}",
    ),
)
