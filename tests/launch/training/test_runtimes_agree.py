"""Every algorithm gives the same on each runtime: the same decisions, and numbers that differ by rounding alone.

TFF's worker is built with instructions that multiply and add in one rounding, TensorFlow's package without them. So
the exponential, the logarithm, tanh and 1/sqrt differ in a last bit, for some arguments; convolutions, matrix products,
sums, softmax, the four operations and sqrt are the same bit for bit, on a CPU for which both use oneDNN. Some training
makes much of a last bit. For that the yardstick is what one bit does within a single runtime: the same rounds from
start weights each of which was moved to a float next to it.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from launch.runs.checkpoints import flatten_state, pack_state
from launch.settings.run_config import RunConfig, build_run_config
from launch.training.federation import build_spec, load_federated_data
from launch.training.run_runtime import open_run_runtime, settle_device
from launch.training.training_run import build_process

ROUNDS = 3
# Of a tensor's largest absolute value.
TOLERANCE = 1e-5
# Where a last bit matters: the case's name has this part.
SENSITIVE = {
    # Adam divides by the size of a gradient, so that one that is rounding alone moves its weight a whole step.
    "fedsikd": "Adam trains the teachers for many steps",
    "random_cluster": "Adam trains the teachers for many steps",
    # A kernel's range ends at its channel's largest weight. TensorFlow computes that end anew from a rounded step; if
    # it is a float lower, the weight counts as clipped.
    "qat": "whether the largest weight of a channel is in its range, and so gets a gradient, is decided by a last bit",
    "8bits": "an update near the middle of two levels is rounded to either",
    "bfloat16": "a value near the middle of two numbers of 8 bits is rounded to either",
}
# A difference of runtimes may be so many times that of a last bit within one.
MOST_OF_ONE_BIT = 3.0
# Of so many draws at most the largest counts.
NUDGES = 5
DIGITS = {"num_clients": 6, "rounds": ROUNDS}
ROOMS = {"building_num_sensors": 6, "rounds": ROUNDS}

CASES = {
    "fl_hc": {**DIGITS, "epochs": 1},
    "fedcd": {
        "rounds": ROUNDS, "clients_per_archetype": 1, "epochs": 1, "milestones": "1,2",
        "cohort_size": 10,
        "late_round": 2, "protected_models": 1,
    },
    "async_periodic": {**DIGITS, "steps": 5},
    "fed_async": {**DIGITS, "steps": 5},
    "buffered": {**DIGITS, "steps": 5},
    "fedsikd": {**DIGITS, "student_epochs": 1, "teacher_epochs": 1},
    "random_cluster": {**DIGITS, "student_epochs": 1, "teacher_epochs": 1},
    "amfl_p": {**ROOMS, "fine_tuning_steps": 5},
    "fine_tuning": {**ROOMS, "local_epochs": 1, "steps": 5},
    "local_only": {**ROOMS, "epochs": 1},
    "fedavg": {**DIGITS, "epochs": 1},
    "fedavg_qat": {**DIGITS, "epochs": 1, "quantize": "qat"},
    "fedavg_qat_later": {**DIGITS, "epochs": 1, "quantize": "qat", "qat_start_round": 2},
    "fedavg_cohort": {**DIGITS, "epochs": 1, "cohort_size": 3, "proximal_weight": 0.1},
    "fedavg_augmented": {**DIGITS, "epochs": 1, "augment": "crop_flip"},
    "fedsikd_private": {
        **DIGITS, "student_epochs": 1, "teacher_epochs": 1, "privacy_epsilon": 4.0,
        "statistics": "per_feature",
    },
    "fedcd_8bits": {
        "rounds": ROUNDS, "clients_per_archetype": 1, "epochs": 1, "milestones": "1,2",
        "cohort_size": 10,
        "compression_bits": 8,
    },
    "fedavg_decayed": {
        **DIGITS, "epochs": 1, "optimizer": "sgd", "momentum": 0.9, "weight_decay": 1e-3,
        "learning_rate_decay": 0.9, "participation": "bernoulli", "cohort_size": 4,
    },
    "fedavg_private_updates": {
        **DIGITS, "epochs": 1, "optimizer": "sgd", "client_weighting": "equal",
        "participation": "bernoulli", "cohort_size": 3, "dp_epsilon": 60.0,
        "dp_clipping": "adaptive", "dp_clip_count_noise": 1.0,
    },
    "fedcd_private_updates": {
        "rounds": ROUNDS, "clients_per_archetype": 1, "epochs": 1, "milestones": "1,2",
        "cohort_size": 10, "weighting": "equal", "dp_epsilon": 60.0,
    },
    "fedsikd_private_updates": {
        **DIGITS, "student_epochs": 1, "teacher_epochs": 1, "teacher": "cluster",
        "privacy_epsilon": 4.0, "dp_epsilon": 60.0,
    },
    "amfl_p_private_updates": {
        **ROOMS, "fine_tuning_steps": 5, "weighting": "equal", "participation": "bernoulli",
        "cohort_size": 3, "dp_epsilon": 60.0,
    },
    "fedavg_8bits": {**DIGITS, "epochs": 1, "compression_bits": 8},
    "fedavg_8bits_stochastic": {
        **DIGITS, "epochs": 1, "compression_bits": 8, "compression_rounding": "stochastic",
    },
    "fedavg_bfloat16": {**DIGITS, "epochs": 1, "precision": "bfloat16"},
    "fl_hc_qat": {**DIGITS, "epochs": 1, "quantize": "qat"},
    "fed_async_away": {**DIGITS, "steps": 5, "dropout": 0.3},
    "buffered_qat": {**DIGITS, "steps": 5, "quantize": "qat"},
    "random_cluster_private": {
        **DIGITS, "student_epochs": 1, "teacher_epochs": 1,
        "privacy_epsilon": 4.0,
    },
    "amfl_p_first_order": {**ROOMS, "fine_tuning_steps": 5, "first_order": True},
    "amfl_p_reptile": {
        **ROOMS, "fine_tuning_steps": 5, "reptile": True, "server_optimizer": "adam",
    },
}  # fmt: skip
ALGORITHM_NAMES = (
    "fedavg", "fedsikd", "random_cluster", "fl_hc", "fedcd", "async_periodic", "fed_async", "buffered", "amfl_p",
    "fine_tuning", "local_only",
)  # fmt: skip


class Rounds(NamedTuple):
    """What rounds gave: each round's state, metrics and events; each client's model at the end."""

    states: list[list[np.ndarray]]
    metrics: list[dict[str, float]]
    events: list[list[tuple]]
    client_models: list[str]
    personal: list[tuple[np.ndarray, ...]]

    def list_last_tensors(self) -> list[np.ndarray]:
        return [np.asarray(array) for arrays in (self.states[-1], *self.personal) for array in arrays]


def name_algorithm(case: str) -> str:
    return max((name for name in ALGORITHM_NAMES if case.startswith(name)), key=len)


def nudge(seed: int, state: Any) -> Any:
    """The state with each weight of a kernel moved to the next float above or below it."""
    rng, leaves = np.random.default_rng(seed), []
    for leaf in flatten_state(state):
        if leaf.dtype == np.float32 and leaf.ndim >= 2:
            way = np.where(rng.random(leaf.shape) < 0.5, np.inf, -np.inf).astype(np.float32)
            # A zero stays: the float next to it is so small that it would vanish in every sum.
            leaf = np.where(leaf == 0, leaf, np.nextafter(leaf, way))
        leaves.append(leaf)
    return pack_state(state, leaves)


def run_rounds(runtime: str, values: dict[str, Any], folder, prepare: Callable = lambda state: state) -> Rounds:
    """The rounds of a config; the last one is done a second time from the same state, and must give the same bytes.

    `prepare` may change the first state.
    """
    config: RunConfig = settle_device(build_run_config({**values, "runtime": runtime, "client_dir": str(folder)}))
    data = load_federated_data(config)
    rounds = Rounds([], [], [], [], [])
    with open_run_runtime(config, str(folder / f"{runtime}.log")):
        process = build_process(config, build_spec(config, data.format), data)
        before = state = prepare(process.initialize())
        for _ in range(ROUNDS):
            before = state
            state, metrics = process.next(before)
            rounds.states.append(flatten_state(state))
            rounds.metrics.append(metrics)
            rounds.events.append(list(process.get_events(state)))
        if runtime == "in_process":
            repeated = flatten_state(process.next(before).state)
            assert [array.tobytes() for array in repeated] == [array.tobytes() for array in rounds.states[-1]]
        rounds.client_models.extend(process.client_model(state))
        rounds.personal.extend(weights for _, weights in process.personalize(state, data.clients))
    return rounds


def measure_difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of two tensors, over the largest absolute value; any difference of decisions is 1."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    if ours.dtype.kind != "f":
        return float(not np.array_equal(ours, theirs))
    if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return 1.0
    finite = np.isfinite(ours)
    largest = np.abs(theirs[finite]).max(initial=0)
    return float(np.abs(ours - theirs)[finite].max(initial=0) / largest) if largest else float(np.any(ours[finite]))


def measure_largest_difference(ours: Rounds, theirs: Rounds) -> float:
    states = [zip(*pair, strict=True) for pair in zip(ours.states, theirs.states, strict=True)]
    pairs = itertools.chain(*states, zip(ours.list_last_tensors(), theirs.list_last_tensors(), strict=True))
    return max(itertools.starmap(measure_difference, pairs))


def assert_same_decisions(ours: Rounds, theirs: Rounds, tolerance: float = 1e-4) -> None:
    """The same but for sums, which may differ by a part of `tolerance`."""
    assert ours.client_models == theirs.client_models
    for row, other in zip(ours.metrics, theirs.metrics, strict=True):
        assert row == pytest.approx(other, rel=tolerance, abs=1e-6, nan_ok=True)
        assert {name: row[name] for name in ("num_clients", "num_rejected", "bytes_up", "bytes_down")} == {
            name: other[name] for name in ("num_clients", "num_rejected", "bytes_up", "bytes_down")
        }
    for events, others in zip(ours.events, theirs.events, strict=True):
        assert [event[1:] for event in events] == [event[1:] for event in others]
        np.testing.assert_allclose([event[0] for event in events], [event[0] for event in others], rtol=1e-6)


def check_case(case: str, own: dict[str, Any], folder) -> str:
    """Runs a case, with settings of its own, on both runtimes; returns what was found."""
    values = {"algo": name_algorithm(case), **own}
    expected, given = (run_rounds(runtime, values, folder) for runtime in ("tff", "in_process"))
    difference = measure_largest_difference(given, expected)
    if difference <= TOLERANCE:
        assert_same_decisions(given, expected)
        return f"{case}: {difference:.1e}"
    assert any(part in case for part in SENSITIVE), f"{difference:.1e}"
    of_one_bit = 0.0
    for seed in range(NUDGES):
        nudged = run_rounds("in_process", values, folder, functools.partial(nudge, seed))
        of_one_bit = max(of_one_bit, measure_largest_difference(nudged, given))
        if difference <= MOST_OF_ONE_BIT * of_one_bit:
            break
    assert difference <= MOST_OF_ONE_BIT * of_one_bit, f"{difference:.1e}, of one bit {of_one_bit:.1e}"
    assert_same_decisions(given, expected, max(1e-4, of_one_bit))
    return f"{case}: {difference:.1e}, of one bit {of_one_bit:.1e}"


@pytest.mark.slow
@pytest.mark.usefixtures("can_close")
@pytest.mark.parametrize("case", CASES)
def test_every_algorithm_agrees(case, tmp_path, record_property):
    found = check_case(case, CASES[case], tmp_path)
    record_property("largest_difference", found)
    print(found)
