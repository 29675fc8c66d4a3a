"""What a run says: what it trains, on what, what came out, and what to type next.

What is found are lines as data, in their order; `say_findings` prints them.
"""

import itertools
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datasets.class_weights import describe_class_weights, describe_weights
from datasets.example_format import count_features
from datasets.federated_data import FederatedData
from datasets.names import name_some
from launch.console.progress import format_duration, say
from launch.console.shown_text import describe_filled, format_count
from launch.runs.columns import (
    BEST,
    EPSILON_SPENT,
    GAIN,
    JOULES,
    KEPT_BEST,
    MAJORITY_ACCURACY,
    NEW_CLIENTS,
    NUM_CLIENTS,
    NUM_EVALUATED,
    NUM_REJECTED,
    OVERALL_MAJORITY_ACCURACY,
    OVERALL_MAJORITY_TEST_ACCURACY,
    RELATIVE_CHANGE,
    ROUND,
    RUN_PAGE,
    START,
    TEST_ACCURACY,
    TEST_LOSS,
    TOKEN_BASELINES,
    TRAIN_LOSS,
    UNDEFINED,
)
from launch.runs.round_table import RoundTable
from launch.runs.run_folder import RunFolder
from launch.runs.run_records import find_longer, read_config
from launch.runs.stored_data import has_test_set
from launch.runs.task_columns import TaskColumns, read_task_columns
from launch.settings.data_flags import BALANCED, NONE
from launch.settings.run_config import RunConfig, algorithm_fields, find_algorithm, find_idle, flag_values
from launch.settings.serving import is_live_run
from launch.settings.trusted_modules import (
    LOSS,
    MOVE,
    SESSION,
    list_foreign_modules,
    list_objects,
    list_session_names,
    spell_program,
    spell_trust,
)
from launch.training.federation import find_attacks
from launch.training.opened_data import is_random
from models.model_names import is_own_model
from tff_algos.settings.config_fields import is_own

# The topic of what the user should know.
NOTE = "note"
# Of a number that a model gets; those of images are at most 1, standardised ones a few.
LARGE_INPUT = 100
# As a share of the norm; a model that moved less starts next to random weights.
LEAST_CHANGE = 0.01

if TYPE_CHECKING:
    from models.model_spec import ModelSpec


class Finding(NamedTuple):
    """A line: what it is about, in at most eight letters ("" as the line before), and what it says."""

    topic: str
    text: str


def say_findings(findings: Iterable[tuple[str, str]]) -> None:
    """Prints them, a line each, as they are found."""
    for topic, text in findings:
        say(f"{topic:<8} {text}")


def resume_command(folder: RunFolder, config: RunConfig, further: Mapping[str, str] = MappingProxyType({})) -> str:
    """What to type to go on with a run: a command or, if it needs what a script or notebook has, a call from there.

    Args:
      folder: of the run.
      config: its settings.
      further: flags to give beside, as {name: value}.
    """
    flags = flag_values(config)
    if list_session_names(list_objects(flags)):
        trusted = ",".join(list_foreign_modules(flags))
        given = "".join(f", {name}={value}" for name, value in further.items())
        return f"fit({config.algo!r}, run_dir={str(folder.path)!r}, resume=True, trust_module={trusted!r}{given})"
    given = "".join(f" --{name}={value}" for name, value in further.items())
    command = "launch.serve" if is_live_run(folder.path) else "launch.train"
    return (
        f"{spell_program(command, flags)} --resume --run_dir={shlex.quote(str(folder.path))}{spell_trust(flags)}{given}"
    )


def find_start(config: RunConfig, folder: RunFolder, data: FederatedData) -> Iterator[Finding]:
    """What is trained, on what data, and into which folder: known before TensorFlow's start, which takes seconds."""
    sizes = data.num_train
    source = "random numbers of its shape (a smoke run)" if is_random(config) else data.dataset
    yield Finding(
        "run",
        f"{find_algorithm(config.algo).name}, {format_count(config.rounds, 'round')}, seed {config.seed}, in "
        f"{folder.path}",
    )
    reading = data.reading and f"; {data.reading}"
    # Before clients are there nobody knows what they have.
    train = "" if data.is_remote else f"{sizes.sum():,} train and "
    examples = f"{train}{format_count(len(data.test_y), 'test example')}"
    yield Finding("data", f"{source}: {examples}, {describe_outputs(data)}{reading}")
    if data.filled:
        yield Finding("filled", describe_filled(data.filled))
    if data.format.weights is not None:
        weights = describe_weights(data.format.weights)
        yield Finding("weights", f"{weights}; test and validation, and what each client counts for, are not weighted")
    for note in data.notes:
        yield Finding(NOTE, note)
    kinds = f" of {format_count(len(data.archetypes.names), 'archetype')}" if data.archetypes else ""
    most = format_count(sizes.max(), "example")
    sizes_text = f"{most} each" if sizes.min() == sizes.max() else f"{sizes.min():,} to {most} each"
    new = f", and {len(data.new_clients)} new when training is over" if data.new_clients else ""
    is_sampled = 0 < config.evaluated_clients < len(data.clients)
    finally_evaluated = config.finally_evaluated_clients
    in_the_end = f"{finally_evaluated:,}" if 0 < finally_evaluated < len(data.clients) else "all"
    evaluated = f"{config.evaluated_clients:,} {'is' if config.evaluated_clients == 1 else 'are'} evaluated in rounds"
    sampled = f"; {evaluated}, {in_the_end} at the end" if is_sampled else ""
    verb = "is" if data.num_clients_left_out == 1 else "are"
    left_out = (
        f"; {data.num_clients_left_out:,} more {verb} left out, since all their examples are held out for the test"
    )
    more = f"{new}{sampled}{left_out if data.num_clients_left_out else ''}"
    split = f"{config.partition} partition, {sizes_text}"
    split = "with examples of their own, on their own machines" if data.is_remote else split
    yield Finding("clients", f"{len(data.clients):,}{kinds}, {split}{more}")
    if (asked := getattr(config.algorithm, "cohort_size", 0)) > len(data.clients):
        there = format_count(len(data.clients), "client")
        yield Finding(NOTE, f"--cohort_size={asked}: more than the {there} there are, so each round asks all of them")
    if names := list_session_names(list_objects(flag_values(config))):
        commands = "evaluate, export or --resume" if _find_used_of_session(config) else "--resume"
        yield Finding(
            NOTE,
            f"{' and '.join(names)}: of the script or notebook itself ({SESSION}), from which no {commands} "
            f"can import; {MOVE} (from my_module import {', '.join(names)})",
        )
    if data.class_weights:
        described = describe_class_weights(data.format.class_names, data.class_weights)
        text = f"of the classes' losses in training ({config.class_weights}): {described}; tests have none"
        yield Finding("weights", text)
    if data.class_weights and config.class_weights == BALANCED:
        counts = zip(data.format.class_names, data.label_counts.sum(axis=0), strict=True)
        if missing := [name for name, count in counts if not count]:
            text = f"no client trains on an example of {name_some(missing)}: such a class weighs 1"
            yield Finding(NOTE, text)


def _find_used_of_session(config: RunConfig) -> list[str]:
    """What using the run's models needs of a script or notebook; a loss is for training alone."""
    return list_session_names(list_objects({**flag_values(config), LOSS: None}))


def describe_outputs(data: FederatedData) -> str:
    """What a model tells of an example, for a line."""
    number = data.format.num_outputs
    match data.format.labels.task:
        case "multi_label":
            return f"{format_count(number, 'label')}, of which each has any"
        case "regression":
            return "a number to tell" if number == 1 else f"{number:,} numbers to tell"
        case "next_token":
            return f"a vocabulary of {format_count(number, 'token')}"
    return format_count(data.format.num_classes, "class", "classes")


def find_models(config: RunConfig, spec: "ModelSpec") -> Iterator[Finding]:
    """Which models are trained, the teacher only if it is; what of a user's is not used; what quantization does."""
    from models.own_model_checks import find_slow_batch_norm
    from models.own_training import list_unused_parts

    float_spec = spec.quantization.float_spec if spec.quantization else spec
    teachers = (spec.teacher,) if spec.teacher is not None and config.algorithm.trains_teacher else ()

    def count(each: "ModelSpec") -> int:
        return sum(math.prod(shape) for shape in each.weight_shapes)

    models = [f"{spec.name} ({format_count(count(float_spec), 'parameter')})"]
    models += [f"{peer.name} ({count(peer):,})" for peer in spec.peers]
    models += [f"its teacher {teacher.name} ({count(teacher):,})" for teacher in teachers]
    yield Finding("model", ", ".join(models) + (f", in {spec.precision}" if spec.precision != "float32" else ""))
    if spec.compiled:
        yield Finding(
            "compile", "training by XLA, which takes a few seconds of the first round; --compile=off leaves it out"
        )
    # BatchNorm's moving statistics may take many rounds to follow the weights, as with Keras's default.
    layer = find_slow_batch_norm(float_spec.build()) if is_own_model(spec.name) else None
    if layer is not None:
        yield Finding(
            NOTE,
            f"{layer.name} is BatchNorm with a momentum of {layer.momentum:g}: test accuracy may swing for "
            "many rounds, until its statistics follow; momentum=0.9 takes few",
        )
    for each in (float_spec, *spec.peers, *teachers):
        # Such as the loss of `compile`, which Keras's `fit` would use.
        if is_own_model(each.name):
            yield from (Finding(NOTE, f"{each.name}: {line}") for line in list_unused_parts(each.build(), each.task))
    if is_own(config.loss):
        yield Finding("loss", f"{config.loss} in training; tests and validation have that of --loss=auto")
    if spec.quantization is not None:
        from models.quantization import plan_quantization

        first = f"from round {config.qat_start_round} on"
        yield Finding("quantize", f"to 8-bit integers, {first}, the layers of {spec.name}:")
        for plan in plan_quantization(float_spec.build()):
            yield Finding("", f"{plan.layer} ({plan.kind}) {plan.treatment}{plan.remark and f': {plan.remark}'}")


def find_rejected_rounds(metrics: RoundTable) -> list[int]:
    """The rounds, from 1, in which somebody sent an update, but none was finite, so that the models stayed."""
    columns = zip(metrics.column(NUM_REJECTED), metrics.column(TRAIN_LOSS), strict=True)
    # Without an update that counts no example was trained, and the loss is NaN.
    return [i for i, (rejected, loss) in enumerate(columns, 1) if rejected and (loss is None or math.isnan(loss))]


def was_all_rejected(metrics: RoundTable) -> bool:
    """Whether nothing but rejected updates was ever sent."""
    rejected = find_rejected_rounds(metrics)
    return bool(rejected) and len(rejected) == sum(map(bool, metrics.column(NUM_CLIENTS)))


def find_troubles(config: RunConfig, data: FederatedData, metrics: RoundTable, is_one_model: bool) -> Iterator[Finding]:
    """What did not go as it should: clients that took no part, updates that were not finite, a model that is of no use.

    Args:
      config: of the run.
      data: its data.
      metrics: its rounds.
      is_one_model: whether all clients use the same model as it is, of classes; only that is held against chance.
    """
    if not any(metrics.column(NUM_CLIENTS)):
        yield Finding(
            NOTE,
            "no client was ready within these rounds, so the model is as it began; give more --rounds, or a "
            "longer period",
        )
    without = 0 if data.is_remote else sum(client.num_test == 0 for client in data.clients)
    if 0 < without < len(data.clients):
        yield Finding(
            NOTE,
            f"{without:,} of {len(data.clients):,} clients {'has' if without == 1 else 'have'} no test example of "
            "their own: what the clients reach is that of the others",
        )
    counts, is_all_rejected = [int(count or 0) for count in metrics.column(NUM_REJECTED)], was_all_rejected(metrics)
    # Where all were rejected, the run ends with an error of its own.
    if any(counts) and not is_all_rejected:
        where = [i for i, count in enumerate(counts, 1) if count]
        whole = len(find_rejected_rounds(metrics))
        stayed = f", in {whole} of them all, so that the models stayed as they were" if whole else ""
        rounds = f"in {len(where)} of {format_count(len(counts), 'round')} (first in round {where[0]}){stayed}"
        advice = advise_on_rejected(config, data)
        number = sum(counts)
        were = "was not finite and does not count" if number == 1 else "were not finite and do not count"
        yield Finding(NOTE, f"{format_count(number, 'update')} {were}, {rounds}; {advice}")
    # As where the outputs are no numbers.
    has_diverged = math.isinf(metrics.last(TEST_LOSS) or 0)
    if has_diverged:
        advice = advise_on_rejected(config, data)
        yield Finding(NOTE, f"the training has diverged: test_loss is infinite; {advice}")
    # A smoke run's data are random numbers.
    elif is_one_model and not config.smoke and not is_all_rejected:
        yield from find_lack_of_learning(metrics, data.test_y, bool(data.notes))


def advise_on_rejected(config: RunConfig, data: FederatedData) -> str:
    """What to do where updates are not finite: about the examples if their numbers are large, else about the rates."""
    largest = find_largest_input(data)
    if largest > LARGE_INPUT and config.standardize == NONE:
        return f"the examples have numbers up to {largest:.3g}: give --standardize=federated"
    given, idle = flag_values(config), find_idle(config)
    names = [each.name for each in algorithm_fields(config.algo) if each.name.endswith("learning_rate")]
    rates = [f"--{name}={given[name]:g}" for name in names if name not in idle]
    advice = "lower the learning rate" + (f" ({', '.join(rates)})" if rates else "")
    attacks = find_attacks(config)
    if attacks.forges_updates:
        strength = f"--{attacks.strength}={getattr(attacks, attacks.strength):g}"
        return f"these may be the attackers', or come from a model that they led astray: lower {strength}; or {advice}"
    return advice


def find_largest_input(data: FederatedData) -> float:
    """The largest size of a measurement that the model gets, over the train examples of the first client that has any.

    Indices of categories are none, whose size no scaling changes.
    """
    if data.format.takes_tokens:
        return 0.0
    client = next(client for client in data.clients if client.num_train)
    x, _ = data.read_split(client, "train")
    preprocessing, shape = data.format.preprocessing, data.format.input_shape
    sizes = np.abs(x.astype(np.float64) * preprocessing.scale + preprocessing.offset)
    columns = sizes.reshape(-1, count_features(shape))
    return float(np.delete(columns, data.format.categories, axis=1).max(initial=0.0))


def find_lack_of_learning(metrics: RoundTable, test_y: np.ndarray, has_notes: bool = False) -> Iterator[Finding]:
    """Whether the last model is not above one answer for all test examples by more than two standard errors.

    A diverged model is such a one. Nothing is found if nobody took part, which has a note of its own.

    Args:
      metrics: the rounds.
      test_y: labels of the test examples, int32, shape (examples,); with none, nothing is found.
      has_notes: whether something was said about the data, which comes before any setting.
    """
    accuracy = metrics.last(TEST_ACCURACY)
    if accuracy is None or not len(test_y) or not any(metrics.column(NUM_CLIENTS)):
        return
    chance = np.bincount(test_y).max() / len(test_y)
    margin = 2 * math.sqrt(chance * (1 - chance) / len(test_y))
    same_answer = f"giving all {format_count(len(test_y), 'test example')} the same answer reaches {chance:.4f}"
    fix, chance_of = "see the notes on the data above, lower the rate" if has_notes else "lower the rate", "luck"
    if EPSILON_SPENT in metrics.columns:
        fix = "the updates' noise may be too large: take more clients, a smaller model or a larger --dp_epsilon"
        chance_of = "noise"
    # Rather than at or below: the accuracy of a diverged model can be NaN.
    if not accuracy > chance:
        yield Finding(
            NOTE,
            f"the model has learned nothing: its test accuracy is {accuracy:.4f}, and {same_answer}; {fix}, "
            "or give more --rounds",
        )
    elif accuracy <= chance + margin:
        yield Finding(
            NOTE,
            f"it is not clear whether the model has learned anything: its test accuracy is {accuracy:.4f}, "
            f"{same_answer}, and up to {margin:.4f} more may be {chance_of}; {fix}, or give more --rounds or more test "
            "examples",
        )


def find_result(config: RunConfig, folder: RunFolder, summary: Mapping[str, Any]) -> Iterator[Finding]:
    """What came out, and what to type next."""
    task, clients = read_task_columns(summary), summary["clients"]
    final, best = summary["final"], summary[BEST]
    duration = format_duration(summary["train_seconds"])
    reached = []
    if config.rounds_per_shared_evaluation:
        common = f"{task.format(final[task.test])} (best {task.format(best[task.test])} in round {best[ROUND]})"
        reached.append(f"test {task.title} {common}")
    if final[task.client_test] is not None or not is_live_run(folder.path):
        reached.append(f"clients' own test {task.title} {task.format(final[task.client_test])}")
    yield Finding("done", f"{format_count(summary['rounds'], 'round')} in {duration}: {', '.join(reached)}")
    others = zip(task.kind.metrics[1:], task.further_tests, strict=True)
    if further := [f"{metric.title} {task.format(final[column])}" for metric, column in others]:
        yield Finding("further", f"on the test set: {', '.join(further)}")
    for key in ("clients", NEW_CLIENTS):
        of_clients = summary.get(key) or {}
        among = ", among those that took no part in training" if key == NEW_CLIENTS else ""
        for sentence in task.say_undefined(of_clients.get(UNDEFINED), of_clients.get(NUM_EVALUATED, 0)):
            yield Finding(NOTE, f"{sentence}{among}")
    yield from compare_with_tables(summary)
    # The labels of a smoke run are mostly random.
    if not config.smoke:
        yield from compare_with_majority(summary, task)
    mean, deviation, _, worst_tenth = (clients.get(name) for name in task.statistics)
    if mean is not None:
        many = "accuracies" if task.is_classification else task.title
        yield Finding(
            "spread",
            f"of the clients' own test {many}: deviation {task.format(deviation)}, "
            f"worst tenth {task.format(worst_tenth)}",
        )
    if energy := summary.get(JOULES):
        yield Finding(
            "energy",
            f"{energy['total']:,.4g} J of all clients in training, {energy['mean']:,.4g} J of one on "
            f"average, at most {energy['most']:,.4g} J",
        )
    if start := summary.get(START):
        yield from find_worth_of_start(start, task)
    if best_round := summary.get(KEPT_BEST):
        reached = task.format(best_round[task.client_validation])
        yield Finding(
            "best",
            f"models of round {best_round[ROUND]}, best by the clients' own validation {task.title} ({reached}), "
            f"are in {folder.best_models}: evaluate or export them with --round=best",
        )
    elif config.keep_best:
        yield Finding(NOTE, "--keep_best has kept no models: no round was evaluated on validation examples")
    if (new_clients := summary.get(NEW_CLIENTS)) and (of_new := new_clients[task.statistics[0]]) is not None:
        yield Finding("new", f"clients that took no part in training: own test {task.title} {task.format(of_new)}")
    if (folder.path / RUN_PAGE).exists():
        yield Finding("page", str(folder.path / RUN_PAGE))
    if config.smoke:
        yield Finding("next", "leave out --smoke" + ("" if config.run_dir else "; the smoke run's folder is removed"))
    else:
        yield from _find_next_commands(config, folder, summary)


def _find_next_commands(config: RunConfig, folder: RunFolder, summary: Mapping[str, Any]) -> Iterator[Finding]:
    flags, path = flag_values(config), shlex.quote(str(folder.path))
    if _find_used_of_session(config):
        found = ["in Python, by the Run that fit returns: predict(examples), load_model()"]
    else:
        # A loss is for training alone, so no command that uses the models needs its module.
        used = {**flags, LOSS: None} if list_session_names(list_objects(flags)) else flags
        section = read_config(folder.path).get("data", {}) if folder.config.exists() else {}
        # Both test what they use.
        commands = ("launch.evaluate", "launch.export") if has_test_set(section) else ()
        found = [f"{spell_program(command, used)} --run_dir={path}{spell_trust(used)}" for command in commands]
    if further := find_longer(flags, summary):
        found.append(resume_command(folder, config, further))
    found.append(f"tensorboard --logdir={shlex.quote(str(folder.tensorboard))}")
    for topic, text in itertools.zip_longest(["next"], found, fillvalue=""):
        yield Finding(topic, text)


def compare_with_tables(summary: Mapping[str, Any]) -> Iterator[Finding]:
    """What tables of tokens reach, and whether the model does not beat them; nothing of a run that is not of text."""
    if not (baselines := summary.get(TOKEN_BASELINES)):
        return
    unigram, bigram = baselines["unigram_accuracy"], baselines["bigram_accuracy"]
    yield Finding(
        "text",
        f"without a model: always the most frequent token {unigram:.4f}, the most frequent one after the "
        f"last token {bigram:.4f}",
    )
    reached = summary["final"][read_task_columns(summary).test]
    if reached is None or math.isnan(reached) or reached <= unigram:
        yield Finding(
            NOTE,
            "the model has learned nothing: it does not beat the most frequent token; lower the rate, or give "
            "more --rounds",
        )
    elif reached <= bigram:
        yield Finding(NOTE, "the model has not learned more than which token follows which: give more --rounds")


def compare_with_majority(summary: Mapping[str, Any], task: TaskColumns) -> Iterator[Finding]:
    """What the majority classes reach, and whether the clients' models do not beat them; nothing where none are."""
    clients = summary["clients"]
    if clients.get(MAJORITY_ACCURACY) is None:
        return
    own, overall = (task.format(clients[name]) for name in (MAJORITY_ACCURACY, OVERALL_MAJORITY_ACCURACY))
    on_test_set = task.format(summary[OVERALL_MAJORITY_TEST_ACCURACY])
    yield Finding(
        "trivial",
        f"without a model, the most frequent class: each client's own {own}, that of all {overall} "
        f"({on_test_set} on the test set)",
    )
    reached = clients[task.statistics[0]]
    # Likewise, a diverged model's NaN beats nothing.
    if not reached > clients[MAJORITY_ACCURACY]:
        yield Finding(
            NOTE,
            f"on their own test splits, the clients' models ({task.format(reached)}) do not beat each one's "
            "most frequent class",
        )


def find_worth_of_start(start: Mapping[str, Any], task: TaskColumns) -> Iterator[Finding]:
    """What the start of fine-tuning was worth, and whether it did not move."""
    change = start[RELATIVE_CHANGE]
    if change < LEAST_CHANGE:
        yield Finding(
            NOTE,
            f"training moved the model by {change:.2%} of its norm, less than {LEAST_CHANGE:.0%}: clients "
            "start next to random weights; raise the rate, or give more --rounds",
        )
    if start[GAIN] is not None:
        trained, random = (task.format(start[name]) for name in task.starts)
        gain = f"{100 * start[GAIN]:+.2f} points" if task.is_classification else f"{start[GAIN]:+.4g} in {task.title}"
        yield Finding(
            "start",
            f"fine-tuned from the trained model {trained}, from random weights {random}: the start gains "
            f"{gain} (it moved by {change:.1%} of its norm)",
        )
