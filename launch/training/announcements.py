"""What a run says: what it trains, on what, what came out, and what to type next."""

import math
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets.catalog import find_dataset
from datasets.example_format import count_features
from datasets.example_weights import describe_weights
from datasets.federated_data import FederatedData
from launch.progress import format_duration, say
from launch.runs.columns import (
    BEST,
    BUDGET_SPENT,
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
    REACHED_LIMITS,
    RELATIVE_CHANGE,
    ROUND,
    RUN_PAGE,
    START,
    STOPPED_EARLY,
    TEST_ACCURACY,
    TEST_LOSS,
    TOKEN_BASELINES,
    TRAIN_LOSS,
    UNDEFINED,
)
from launch.runs.round_table import RoundTable
from launch.runs.run_folder import RunFolder
from launch.runs.shown_text import describe_filled
from launch.runs.task_columns import TaskColumns, read_task_columns
from launch.settings.data_flags import NONE
from launch.settings.run_config import RunConfig, algorithm_fields, find_algorithm, find_idle, flag_values
from launch.settings.session_objects import MOVE, SESSION, list_session_names
from launch.settings.trusted_modules import LOSS, list_foreign_modules, list_objects, spell_program, spell_trust
from launch.training.attackers import find_attacks
from models.model_names import is_own_model
from tff_algos.settings.config_fields import is_own

LARGE_INPUT = 100  # of a number that a model gets; those of images are at most 1, standardised ones a few
LEAST_CHANGE = 0.01  # as a share of the norm; a model that moved less starts next to random weights

if TYPE_CHECKING:
    from models.model_spec import ModelSpec


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
    return (
        f"{spell_program('launch.train', flags)} --resume --run_dir={shlex.quote(str(folder.path))}"
        f"{spell_trust(flags)}{given}"
    )


def announce_data(config: RunConfig, folder: RunFolder, data: FederatedData) -> None:
    """Says what is trained, on what data, and into which folder, before TensorFlow's start, which takes seconds."""
    sizes = data.num_train
    is_random = config.smoke and find_dataset(config.dataset).is_drawn_for_smoke
    source = "random numbers of its shape (a smoke run)" if is_random else data.dataset
    say(f"run      {find_algorithm(config.algo).name}, {config.rounds} rounds, seed {config.seed}, in {folder.path}")
    reading = data.reading and f"; {data.reading}"
    say(f"data     {source}: {sizes.sum():,} train and {len(data.test_y):,} test examples, {describe_outputs(data)}"
        f"{reading}")  # fmt: skip
    if data.filled:
        say(f"filled   {describe_filled(data.filled)}")
    if data.format.weights is not None:
        say(f"weights  {describe_weights(data.format.weights)}; test and validation, and what each client counts for, "
            "are not weighted")  # fmt: skip
    for note in data.notes:
        say(f"note     {note}")
    kinds = f" of {len(data.archetypes.names)} archetypes" if data.archetypes else ""
    sizes_text = f"{sizes.min():,} to {sizes.max():,} examples each"
    new = f", and {len(data.new_clients)} new when training is over" if data.new_clients else ""
    is_sampled = 0 < config.evaluated_clients < len(data.clients)
    finally_evaluated = config.finally_evaluated_clients
    in_the_end = f"{finally_evaluated:,}" if 0 < finally_evaluated < len(data.clients) else "all"
    sampled = f"; {config.evaluated_clients:,} are evaluated in rounds, {in_the_end} at the end" if is_sampled else ""
    left_out = describe_clients_left_out(data.num_clients_left_out)
    say(f"clients  {len(data.clients):,}{kinds}, {config.partition} partition, {sizes_text}{new}{sampled}{left_out}")
    if names := list_session_names(list_objects(flag_values(config))):
        commands = "evaluate, export or --resume" if _find_used_of_session(config) else "--resume"
        say(f"note     {' and '.join(names)}: of the script or notebook itself ({SESSION}), from which no {commands} "
            f"can import; {MOVE} (from my_module import {', '.join(names)})")  # fmt: skip


def _find_used_of_session(config: RunConfig) -> list[str]:
    """What using the run's models needs of a script or notebook; a loss is for training alone."""
    return list_session_names(list_objects({**flag_values(config), LOSS: None}))


def describe_outputs(data: FederatedData) -> str:
    """What a model tells of an example, for a line."""
    number = data.format.num_outputs
    match data.format.labels.task:
        case "multi_label":
            return f"{number:,} labels, of which each has any"
        case "regression":
            return "a number to tell" if number == 1 else f"{number:,} numbers to tell"
        case "next_token":
            return f"a vocabulary of {number:,} tokens"
    return f"{data.format.num_classes} classes"


def describe_clients_left_out(number: int) -> str:
    """A half sentence on the clients of the data that are not trained with; empty if there are none."""
    verb = "is" if number == 1 else "are"
    return f"; {number:,} more {verb} left out, since all their examples are held out for the test" if number else ""


def announce_model(config: RunConfig, spec: "ModelSpec") -> None:
    """Says which models are trained, the teacher only if it is, and what quantization does to each layer."""
    float_spec = spec.quantization.float_spec if spec.quantization else spec
    models = [f"{spec.name} ({_count_parameters(float_spec):,} parameters)"]
    models += [f"{peer.name} ({_count_parameters(peer):,})" for peer in spec.peers]
    if spec.teacher is not None and config.algorithm.trains_teacher:
        models.append(f"its teacher {spec.teacher.name} ({_count_parameters(spec.teacher):,})")
    say(f"model    {', '.join(models)}" + (f", in {spec.precision}" if spec.precision != "float32" else ""))
    if spec.compiled:
        say("compile  training by XLA, which takes a few seconds of the first round; --compile=off leaves it out")
    if is_own_model(spec.name):
        say_if_statistics_are_slow(float_spec)
    teachers = (spec.teacher,) if spec.teacher is not None and config.algorithm.trains_teacher else ()
    for each in (float_spec, *spec.peers, *teachers):
        if is_own_model(each.name):
            say_what_is_not_used(each)
    if is_own(config.loss):
        say(f"loss     {config.loss} in training; tests and validation have that of --loss=auto")
    if spec.quantization is not None:
        from models.quantization import plan_quantization

        say(f"quantize to 8-bit integers, from round {config.qat_start_round} on, the layers of {spec.name}:")
        for plan in plan_quantization(float_spec.build()):
            say(f"         {plan.layer} ({plan.kind}) {plan.treatment}{plan.remark and f': {plan.remark}'}")


def say_what_is_not_used(spec: "ModelSpec") -> None:
    """Says what a model of the user's brings for Keras's `fit` that no client uses, such as the loss of `compile`."""
    from models.own_training import list_unused_parts

    for line in list_unused_parts(spec.build(), spec.task):
        say(f"note     {spec.name}: {line}")


def say_if_statistics_are_slow(spec: "ModelSpec") -> None:
    """Says so if BatchNorm's moving statistics take many rounds to follow the weights, as with Keras's default."""
    from models.own_model_checks import find_slow_batch_norm

    layer = find_slow_batch_norm(spec.build())
    if layer is not None:
        say(f"note     {layer.name} is BatchNorm with a momentum of {layer.momentum:g}: test accuracy may swing for "
            "many rounds, until its statistics follow; momentum=0.9 takes few")  # fmt: skip


def _count_parameters(spec: "ModelSpec") -> int:
    return sum(math.prod(shape) for shape in spec.weight_shapes)


def say_if_nobody_took_part(metrics: RoundTable) -> None:
    """Says so if no client took part in any round."""
    if not any(metrics.column(NUM_CLIENTS)):
        say("note     no client was ready within these rounds, so the model is as it began; give more --rounds, or a "
            "longer period")  # fmt: skip


def say_if_clients_lack_tests(data: FederatedData) -> None:
    """Says so if some clients, but not all, have no test examples, and so no part in what clients reach."""
    without = sum(client.num_test == 0 for client in data.clients)
    if 0 < without < len(data.clients):
        say(f"note     {without:,} of {len(data.clients):,} clients have no test example of their own: what the "
            "clients reach is that of the others")  # fmt: skip


def find_rejected_rounds(metrics: RoundTable) -> list[int]:
    """The rounds, from 1, in which somebody sent an update, but none was finite, so that the models stayed."""
    columns = zip(metrics.column(NUM_REJECTED), metrics.column(TRAIN_LOSS), strict=True)
    # Without an update that counts no example was trained, and the loss is NaN.
    return [i for i, (rejected, loss) in enumerate(columns, 1) if rejected and (loss is None or math.isnan(loss))]


def was_all_rejected(metrics: RoundTable) -> bool:
    """Whether nothing but rejected updates was ever sent."""
    rejected = find_rejected_rounds(metrics)
    return bool(rejected) and len(rejected) == sum(map(bool, metrics.column(NUM_CLIENTS)))


def say_if_updates_were_rejected(config: RunConfig, metrics: RoundTable, data: FederatedData) -> None:
    """Says so if updates were not finite, unless all were, in every round."""
    counts = [int(count or 0) for count in metrics.column(NUM_REJECTED)]
    if not any(counts) or was_all_rejected(metrics):
        return
    where = [i for i, count in enumerate(counts, 1) if count]
    whole = len(find_rejected_rounds(metrics))
    stayed = f", in {whole} of them all, so that the models stayed as they were" if whole else ""
    say(f"note     {sum(counts)} updates were not finite and do not count, in {len(where)} of {len(counts)} rounds "
        f"(first in round {where[0]}){stayed}; {advise_on_rejected(config, data)}")  # fmt: skip


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


def say_if_diverged(config: RunConfig, metrics: RoundTable, data: FederatedData) -> bool:
    """Says so if the last model's loss on the test set is infinite, as where its outputs are no numbers; whether so."""
    if not math.isinf(metrics.last(TEST_LOSS) or 0):
        return False
    say(f"note     the training has diverged: test_loss is infinite; {advise_on_rejected(config, data)}")
    return True


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


def say_if_nothing_was_learned(metrics: RoundTable, test_y: np.ndarray, has_notes: bool = False) -> None:
    """Says so if the last model is not above one answer for all test examples by more than two standard errors.

    A diverged model is such a one. Nothing is said if nobody took part, which has a note of its own.

    Args:
      metrics: the rounds.
      test_y: labels of the test examples, int32, shape (examples,); with none, nothing is said.
      has_notes: whether something was said about the data, which comes before any setting.
    """
    accuracy = metrics.last(TEST_ACCURACY)
    if accuracy is None or not len(test_y) or not any(metrics.column(NUM_CLIENTS)):
        return
    chance = np.bincount(test_y).max() / len(test_y)
    margin = 2 * math.sqrt(chance * (1 - chance) / len(test_y))
    same_answer = f"giving all {len(test_y):,} test examples the same answer reaches {chance:.4f}"
    fix = "see the notes on the data above, lower the rate" if has_notes else "lower the rate"
    if not accuracy > chance:  # rather than at or below: the accuracy of a diverged model can be NaN
        say(f"note     the model has learned nothing: its test accuracy is {accuracy:.4f}, and {same_answer}; {fix}, "
            "or give more --rounds")  # fmt: skip
    elif accuracy <= chance + margin:
        say(f"note     it is not clear whether the model has learned anything: its test accuracy is {accuracy:.4f}, "
            f"{same_answer}, and up to {margin:.4f} more may be luck; {fix}, or give more --rounds or more test "
            "examples")  # fmt: skip


def say_result(config: RunConfig, folder: RunFolder, summary: dict[str, Any]) -> None:
    """Says what came out, and what to type next."""
    task = read_task_columns(summary)
    final, best = summary["final"], summary[BEST]
    duration = format_duration(summary["train_seconds"])
    say(f"done     {summary['rounds']} rounds in {duration}: test {task.title} "
        f"{task.format(final[task.test])} (best {task.format(best[task.test])} in round {best[ROUND]}), "
        f"clients' own test {task.title} {task.format(final[task.client_test])}")  # fmt: skip
    _say_further(task, final)
    for key in ("clients", NEW_CLIENTS):
        of_clients = summary.get(key) or {}
        for sentence in task.say_undefined(of_clients.get(UNDEFINED), of_clients.get(NUM_EVALUATED, 0)):
            say(f"note     {sentence}" + (", among those that took no part in training" if key == NEW_CLIENTS else ""))
    say_text_baselines(summary)
    if not config.smoke:  # whose labels are mostly random
        say_majority(summary, task)
    mean, deviation, _, worst_tenth = (summary["clients"].get(name) for name in task.statistics)
    if mean is not None:
        many = "accuracies" if task.is_classification else task.title
        say(f"spread   of the clients' own test {many}: deviation {task.format(deviation)}, "
            f"worst tenth {task.format(worst_tenth)}")  # fmt: skip
    if energy := summary.get(JOULES):
        say(f"energy   {energy['total']:,.4g} J of all clients in training, {energy['mean']:,.4g} J of one on average, "
            f"at most {energy['most']:,.4g} J")  # fmt: skip
    say_start(summary.get(START, {}), task)
    say_best(config, folder, summary, task)
    if (new_clients := summary.get(NEW_CLIENTS)) and (of_new := new_clients[task.statistics[0]]) is not None:
        say(f"new      clients that took no part in training: own test {task.title} {task.format(of_new)}")
    if (folder.path / RUN_PAGE).exists():
        say(f"page     {folder.path / RUN_PAGE}")
    path = shlex.quote(str(folder.path))
    if config.smoke:
        say("next     leave out --smoke" + ("" if config.run_dir else "; the smoke run's folder is removed"))
        return
    flags = flag_values(config)
    if _find_used_of_session(config):
        say("next     in Python, by the Run that fit returns: predict(examples), load_model()")
    else:
        used = {**flags, LOSS: None} if list_session_names(list_objects(flags)) else flags
        for start, command in (("next    ", "launch.evaluate"), ("        ", "launch.export")):
            say(f"{start} {spell_program(command, used)} --run_dir={path}{spell_trust(used)}")
    if not summary.get(BUDGET_SPENT):
        is_stopped = STOPPED_EARLY in summary
        further = {"patience": f"{2 * config.patience}"} if is_stopped else {"rounds": f"{2 * config.rounds}"}
        if limits := summary.get(REACHED_LIMITS):
            further = {flag: f"{2 * limit:g}" for flag, limit in limits.items() if limit}
        say(f"         {resume_command(folder, config, further)}")
    say(f"         tensorboard --logdir={shlex.quote(str(folder.tensorboard))}")


def _say_further(task: TaskColumns, final: Mapping[str, float | None]) -> None:
    """Says what the task's other metrics are on the global test set; nothing of a task with one metric."""
    others = zip(task.kind.metrics[1:], task.further_tests, strict=True)
    texts = [f"{metric.title} {task.format(final[column])}" for metric, column in others]
    if texts:
        say(f"further  on the test set: {', '.join(texts)}")


def say_text_baselines(summary: Mapping[str, Any]) -> None:
    """Says what the tables reach, and so if the model does not beat them; nothing of a run that is not of text."""
    baselines = summary.get(TOKEN_BASELINES)
    if not baselines:
        return
    unigram, bigram = baselines["unigram_accuracy"], baselines["bigram_accuracy"]
    say(f"text     without a model: always the most frequent token {unigram:.4f}, the most frequent one after the last "
        f"token {bigram:.4f}")  # fmt: skip
    task = read_task_columns(summary)
    reached = summary["final"][task.test]
    if reached is None or math.isnan(reached) or reached <= unigram:
        say("note     the model has learned nothing: it does not beat the most frequent token; lower the rate, or give "
            "more --rounds")  # fmt: skip
    elif reached <= bigram:
        say("note     the model has not learned more than which token follows which: give more --rounds")


def say_majority(summary: Mapping[str, Any], task: TaskColumns) -> None:
    """Says what the majority classes reach, and so if the clients' models do not beat them; nothing where none are."""
    clients = summary["clients"]
    if clients.get(MAJORITY_ACCURACY) is None:
        return
    own, overall = (task.format(clients[name]) for name in (MAJORITY_ACCURACY, OVERALL_MAJORITY_ACCURACY))
    on_test_set = task.format(summary[OVERALL_MAJORITY_TEST_ACCURACY])
    say(f"trivial  without a model, the most frequent class: each client's own {own}, that of all {overall} "
        f"({on_test_set} on the test set)")  # fmt: skip
    reached = clients[task.statistics[0]]
    if not reached > clients[MAJORITY_ACCURACY]:
        say(f"note     on their own test splits, the clients' models ({task.format(reached)}) do not beat each one's "
            "most frequent class")  # fmt: skip


def say_best(config: RunConfig, folder: RunFolder, summary: Mapping[str, Any], task: TaskColumns) -> None:
    """Says which round's models are kept beside the last ones, if any were to be."""
    if kept := summary.get(KEPT_BEST):
        reached = task.format(kept[task.client_validation])
        say(f"best     models of round {kept[ROUND]}, best by the clients' own validation {task.title} ({reached}), "
            f"are in {folder.best_models}: evaluate or export them with --round=best")  # fmt: skip
    elif config.keep_best:
        say("note     --keep_best has kept no models: no round was evaluated on validation examples")


def say_start(start: Mapping[str, Any], task: TaskColumns) -> None:
    """Says what the start of fine-tuning was worth, and so if it did not move; nothing of a run without fine-tuning."""
    if not start:
        return
    change = start[RELATIVE_CHANGE]
    if change < LEAST_CHANGE:
        say(f"note     training moved the model by {change:.2%} of its norm, less than {LEAST_CHANGE:.0%}: clients "
            "start next to random weights; raise the rate, or give more --rounds")  # fmt: skip
    if start[GAIN] is not None:
        trained, random = (task.format(start[name]) for name in task.starts)
        gain = f"{100 * start[GAIN]:+.2f} points" if task.is_classification else f"{start[GAIN]:+.4g} in {task.title}"
        say(f"start    fine-tuned from the trained model {trained}, from random weights {random}: the start gains "
            f"{gain} (it moved by {change:.1%} of its norm)")  # fmt: skip
