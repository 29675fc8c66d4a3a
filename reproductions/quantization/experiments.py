"""Quantization: students of FedSiKD (Alsenani et al. 2024) in floats, and the same trained for 8-bit integers (QAT).

Expected: the paper does not quantize and prints nothing; `tables.toml` has what is aimed at.
Cost on two cores: 3 minutes of training a run on MNIST, 15 on HAR; the 12 kept runs took 2 hours.
Command: `python -m launch.sweep --experiments='quantization/*' --seeds=0-2 -- --runtime=tff`, then `launch.export`.
"""

from collections.abc import Iterator

from launch.settings.experiments import Experiment, from_code, make_experiment, ours
from reproductions.fedsikd import experiments as fedsikd
from reproductions.fedsikd.experiments import HAR, MNIST

ALPHA = 0.5
TUNED = (
    "tuned on the clients' validation splits at alpha 0.1, seed 0, rounds 1 to 5; the search space and the trials were "
    "not kept"
)


# FedSiKD on each data set, and what is quantized.
SETTINGS = {
    "har": [
        *fedsikd.list_shared("fedsikd", HAR, ALPHA),
        fedsikd.HAR_EPOCHS,
        fedsikd.ADAM,
        fedsikd.LEADER,
        HAR.inputs,
        ours("the paper does not print T, and logits are distilled", temperature=3.0),
        fedsikd.choose_statistics(HAR),
        ours(
            TUNED,
            "Fewer clusters, so that a leader's teacher serves more clients, and less weight on what it says. Averages "
            "are weighted by examples.",
            num_clusters=2,
            label_weight=0.8,
            weighting="examples",
        ),
    ],
    "mnist": [
        *fedsikd.list_shared("fedsikd", MNIST, ALPHA),
        from_code(fedsikd.CODE, student_epochs=6),
        fedsikd.ADAM,
        ours("the paper prints neither w nor T, and logits are distilled", label_weight=0.5, temperature=3.0),
        ours(
            TUNED,
            "All members of a cluster train its teacher, for fewer epochs. The distillation term is multiplied by T "
            "squared, so that T does not weaken it. Averages are weighted by examples.",
            teacher="cluster",
            teacher_epochs=3,
            num_clusters=2,
            statistics="per_feature",
            temperature_squared=True,
            weighting="examples",
        ),
    ],
}


def list_rows() -> Iterator[Experiment]:
    """A float run and its twin, on each data set."""
    quantized = ours(
        "the students are trained for 8-bit integers, from the first round of a short run",
        "The paper does not quantize.",
        rounds=10,
        quantize="qat",
    )
    nothing = "nothing; the paper does not quantize."
    for data in (HAR, MNIST):
        settings = SETTINGS[data.name]
        name = f"fedsikd_{data.name}_quantization"
        about = f"Table of quantization: {fedsikd.describe('fedsikd', data, ALPHA)}"
        floats = f"{about}, the float run beside the one trained for 8-bit integers."
        yield make_experiment(name, floats, *settings, printed=nothing)
        integers = (
            f"{about}, with the student trained for 8-bit integers. Its settings are those of {name} with "
            "--rounds=10, the float run beside it. launch.export exports both, and launch.report --tables=quantization "
            "compares them."
        )
        yield make_experiment(f"{name}_qat", integers, *settings, quantized, printed=nothing)


EXPERIMENTS = tuple(list_rows())
