"""What the AMFL-P paper claims in words, each with the rule that decides it, and what we compare beside.

The paper does not say at which heterogeneity Table 1 was measured, nor up to which accuracy rounds are counted; both
were chosen here before any run. The text that we have has lost Table 2.
"""

import functools
import itertools

from reproductions.amfl_p.measures import ACCURACY, ALGOS, DATASET, LAST_ROUND, LEVELS, STEPS, TABLE_1_LEVEL
from reproductions.engine.claim_rows import Book
from reproductions.engine.comparisons import mean

BASELINES = ("fine_tuning", "fedavg")
OURS = {
    "pooled_reference": "pooled reference",
    "weighting_adaptive": "adaptive weights",
    "weighting_examples": "by examples",
    "weighting_equal": "equal",
    # With one inner step, as in the summary of the algorithm.
    "few_shot_maml1": "MAML",
    "few_shot_fedavg": "FedAvg",
    "few_shot_random": "random",
}
BOOK = Book(
    at={"dataset": DATASET, "setting": TABLE_1_LEVEL, "round": LAST_ROUND, "metric": ACCURACY},
    names={"algo": ALGOS | OURS},
    texts={2: "{0.setting}: {0.algo} {0}, {1.algo} {1}"},
)
claim, further = BOOK.claim, BOOK.further
section_4_2, section_4_3, section_5 = (functools.partial(claim, section) for section in ("4.2", "4.3", "5"))
CLAIMS = (
    section_4_2(
        '"AMFL-P outperforms both FedAvg and Fine-Tuning in terms of accuracy"',
        "mean over the clients of their accuracy at round 50, medium heterogeneity",
        lambda runs: [runs("amfl_p") > runs(other) for other in BASELINES],
    ),
    section_4_2(
        '"AMFL-P also converges faster than the other algorithms"',
        "fewer rounds to 75%, medium heterogeneity; by signs, if some runs never get there",
        lambda runs: [runs(other) > runs("amfl_p") for other in BASELINES],
        metric="rounds_to_target",
    ),
    section_4_2(
        '"AMFL-P achieves better resource utilization than Fine-Tuning"',
        "fewer fine-tuning steps, mean over the devices",
        lambda runs: runs("fine_tuning", STEPS) > runs("amfl_p", STEPS),
        by_construction="N_i = N_max R_i / R_max is at most N_max, which every device takes in Fine-Tuning",
    ),
    section_4_3(
        '"the accuracy of all algorithms decreases as the level of data heterogeneity increases"',
        "low above medium above high, for each of the three",
        lambda runs: [
            runs(algo, setting=level) > runs(algo, setting=harder)
            for algo in ("amfl_p", *BASELINES)
            for level, harder in itertools.pairwise(LEVELS)
        ],
        text="{0.algo} {0} ({0.setting}), {1.algo} {1} ({1.setting})",
    ),
    section_4_3(
        '"AMFL-P consistently outperforms FedAvg and Fine-Tuning across all levels of heterogeneity"',
        "at each level, round 50",
        lambda runs: [
            runs("amfl_p", setting=level) > runs(other, setting=level) for level in LEVELS for other in BASELINES
        ],
    ),
    section_4_3(
        '"AMFL-P is more robust to data heterogeneity than the other algorithms"',
        "it loses less accuracy from low to high",
        lambda runs: [
            runs("amfl_p", setting="low") - runs("amfl_p", setting="high")
            < runs(other, setting="low") - runs(other, setting="high")
            for other in BASELINES
        ],
        text="from low to high AMFL-P {0} to {1}, {2.algo} {2} to {3}",
    ),
    section_5(
        '"compared to traditional Federated Averaging (FedAvg), AMFL-P achieves significantly higher accuracy"',
        "round 50, medium heterogeneity",
        lambda runs: runs("amfl_p") > runs("fedavg"),
    ),
    section_5(
        '"compared to ... fine-tuning, AMFL-P also achieves higher accuracy"',
        "round 50, medium heterogeneity",
        lambda runs: runs("amfl_p") > runs("fine_tuning"),
    ),
    section_4_2(  # by our ablations
        '"The adaptive weighting scheme for meta-gradient aggregation also contributes to the improved performance"',
        "adaptive weights above weights by examples and above equal ones, all else the same: accuracy at the end, "
        "medium heterogeneity, with settings tuned for adaptive weights (our factorial and ablations)",
        lambda runs: [runs("weighting_adaptive") > runs(f"weighting_{other}") for other in ("examples", "equal")],
    ),
    section_4_2(  # by our few-shot runs
        '"AMFL-P leverages meta-learning ..., allowing for ... improved performance even with limited local data"',
        "as a start, MAML's model lies above FedAvg's and above random weights after 5 fine-tuning steps, with each of "
        "16, 32, 64 readings a sensor: sensors that took part in training, medium heterogeneity, one finish for all "
        "(our few-shot runs). The paper does not measure it; that step and one inner step are our choice, fixed before "
        "the runs",
        lambda runs: [
            runs("few_shot_maml1", setting=readings) > runs(f"few_shot_{other}", setting=readings)
            for readings in ("16 readings", "32 readings", "64 readings")
            for other in ("fedavg", "random")
        ],
    ),
    section_4_2(
        '"the average number of fine-tuning steps performed by each device in AMFL-P is 65"',
        not_comparable="The law of R_i fixes it, whatever is learned. N_i = N_max R_i / R_max with N_max = 100 and R_i "
        "uniform in 0.1 to 1 has a mean of 55; Table 1 has ours. 65 needs another law, which the paper does not give.",
    ),
)
FURTHER = (
    further(
        "medium heterogeneity: FedAvg is 10 points or more below the pooled reference",
        lambda runs: runs("pooled_reference") >= runs("fedavg") + 0.10,
    ),
    further(
        "medium heterogeneity: AMFL-P closes half of that gap or more",
        lambda runs: runs("amfl_p") >= mean([runs("fedavg"), runs("pooled_reference")]),
        text="AMFL-P {0}, minus the middle between FedAvg {1} and pooled reference {2}",
    ),
    further(
        "medium heterogeneity: AMFL-P is at most 1 point behind Fine-Tuning",
        lambda runs: runs("amfl_p") >= runs("fine_tuning") - 0.01,
    ),
    further(
        "medium heterogeneity: AMFL-P is ahead of local training", lambda runs: runs("amfl_p") > runs("local_only")
    ),
)
