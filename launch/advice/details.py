"""The tables of the page: methods, clients, trials, and what was left out. Imports no TensorFlow."""

from collections.abc import Iterator

from launch.advice.choices import FEDAVG, list_common_seeds
from launch.advice.contrasts import CLIENTS, LEAST_CLIENTS
from launch.advice.decision import count_looks
from launch.advice.measures import BYTES, TIME, Cost, Measured, average_results
from launch.advice.questions import MAIN, Comparison
from launch.advice.sentences import Numbers, get_numbers
from launch.advice.verdict import Advice
from launch.console.progress import format_duration
from launch.console.shown_text import escape_hidden
from launch.contests.contest import Entered, TrialResult
from launch.pages.comparison.seed_statistics import compute_mean
from launch.pages.report.parts import MOST_ROWS, Table
from launch.pages.report.words import UNKNOWN, count, show_bytes, show_cell, show_seconds
from launch.sweeps.tuning.search_space import describe_settings

LIMITS = {BYTES: "traffic", TIME: "device time"}
LOW = 0.001  # a p-value below is said to be below


def tabulate_methods(advice: Advice) -> Table:
    """A row a method, then those without a model; results are means over the clients and the seeds."""
    numbers, has_new = get_numbers(advice), any(each.new for each in advice.methods)
    columns = ["Method", f"Better than alone by{_name_unit(numbers)}", advice.task.heading]
    columns += ["On validation examples", "Worst tenth", *(["New clients"] if has_new else [])]
    rows, seeds = [], list_common_seeds(advice.methods)
    for each in (*advice.methods, *advice.rows):
        comparison = advice.beside_alone.get(each.name)
        row = [_title(advice, each), _show_beside(numbers, comparison), numbers.show(each.average())]
        row.append(_show_known(numbers, each.average_validation(seeds or each.validations)))
        row.append(_show_known(numbers, each.average_worst_tenth(advice.task)))
        if has_new:
            row.append(_show_known(numbers, average_results(each.new)))
        rows.append([*row, *_show_spent(each)])
    note = (
        "Validation results choose the best method, over the repeats that all have; test results, all others here, "
        "compare. FedAvg and training alone are compared whatever their trials gave."
    )
    return Table([*columns, "Traffic a client", "Device time"], rows, note)


def tabulate_lengths(advice: Advice) -> Table:
    """How long the runs of each method were."""
    rows = []
    for each in advice.methods:
        limit = LIMITS.get(each.cost.limit, "rounds") if each.is_federated else "rounds"
        rows.append([each.title, show_cell(float(round(each.cost.rounds))), limit, _list_seeds(each)])
    return Table(["Method", "Rounds", "Ended by", "Seeds"], rows)


def _list_seeds(each: Measured) -> str:
    return ", ".join(map(str, sorted(each.tests)))


def _title(advice: Advice, each: Measured) -> str:
    is_advised = each.name == advice.decision.advised
    title = f"{each.title[:1].upper()}{each.title[1:]}"
    return f"{title} (advised)" if is_advised else title


def _show_known(numbers: Numbers, value: float | None) -> str:
    return UNKNOWN if value is None else numbers.show(value)


def _show_beside(numbers: Numbers, comparison: Comparison | None) -> str:
    return UNKNOWN if comparison is None else numbers.show_ends(comparison.ends)


def _name_unit(numbers: Numbers) -> str:
    return f", {numbers.unit}" if numbers.unit else ""


def _show_spent(each: Measured) -> list[str]:
    cost = each.cost if each.runs else Cost()
    sent = UNKNOWN if cost.bytes is None else show_bytes(cost.bytes)
    return [sent, UNKNOWN if cost.seconds is None else show_seconds(cost.seconds)]


def list_settings(advice: Advice) -> list[tuple[str, str]]:
    """(method, its chosen settings)."""
    return [(each.title, describe_settings(each.settings)) for each in advice.methods if each.settings]


def list_marks(advice: Advice) -> list[tuple[str, str]]:
    """(method, mark)."""
    titles = {each.name: each.title for each in advice.methods}
    return [(titles[name], mark) for name, marks in advice.marks.items() for mark in marks]


def list_left_out(advice: Advice) -> list[tuple[str, str]]:
    """(method, why it has no runs on fresh seeds)."""
    entered = advice.outcome.entered
    return [(each.method.title, each.why_out or "no run of it ended in time") for each in entered if not each.runs]


def tabulate_comparisons(advice: Advice) -> Table | None:
    """The comparisons that the verdict rests on, with their p-values."""
    numbers, rows = get_numbers(advice), []
    for comparison in advice.decision.comparisons.values():
        names = [advice.find(name) for name in (comparison.first, comparison.second)]
        contrast, doubted = comparison.contrast, comparison.contrast.doubted
        rows.append(
            [
                " against ".join(each.title for each in names),
                UNKNOWN if contrast.gain is None else f"{numbers.show_gain(contrast.gain)}{_sign(contrast.gain)}",
                _show_beside(numbers, comparison),
                show_p_value(contrast.p_value) if contrast.samples else UNKNOWN,
                f"{comparison.rate:.3f}",
                "yes" if comparison.is_decided else "no",
                f"{doubted.count:,} {doubted.unit}" if doubted else UNKNOWN,
            ]
        )
    titles = [
        "Comparison",
        "Difference",
        f"Range{_name_unit(numbers)}",
        "p-value",
        "Decided below",
        "Decided",
        "Most doubtful over",
    ]
    return Table(titles, rows) if rows else None


def _sign(gain: float) -> str:
    return " better" if gain > 0 else " worse" if gain < 0 else ""


def show_p_value(value: float) -> str:
    """ "<0.001", "0.041"."""
    return f"<{LOW:g}" if value < LOW else f"{value:.3f}"


def tabulate_clients(advice: Advice) -> Table | None:
    """The judged method beside alone, a row a client, the worst off first; None without a comparison."""
    over, numbers = advice.decision.over_alone, get_numbers(advice)
    if over is None or not over.contrast.by_client:
        return None
    method, alone = (each.average_clients() for each in (advice.judged, advice.alone))
    gains = sorted(over.contrast.by_client.items(), key=lambda each: each[1])
    rows = [
        [show_cell(name), numbers.show(method.get(name)), numbers.show(alone.get(name)), _show_signed(numbers, gain)]
        for name, gain in gains[:MOST_ROWS]
    ]
    note = f"The {count(MOST_ROWS, 'client')} that are worst off." if len(gains) > MOST_ROWS else ""
    return Table(["Client", advice.judged.title, advice.alone.title, "Difference"], rows, note)


def tabulate_models(advice: Advice) -> Table | None:
    """Which clients use which model, in the first run of the judged method; None where all use one, or each its own."""
    method = advice.judged
    groups: dict[str, list[str]] = {}
    for client, model in (method.used if method else {}).items():
        groups.setdefault(model, []).append(show_cell(client))
    if not 1 < len(groups) < len(method.used if method else {}):
        return None
    order = sorted(groups, key=lambda model: (len(model), model))
    rows = [[show_cell(model), f"{len(groups[model]):,}", ", ".join(groups[model])] for model in order]
    return Table(["Model", "Clients", "Their names"], rows)


def _show_signed(numbers: Numbers, gain: float) -> str:
    return f"{numbers.show_gain(gain)}{_sign(gain)}"


def tabulate_trials(advice: Advice) -> Iterator[tuple[str, Table]]:
    """(method, its trials): on validation examples, means over the seeds of each rung."""
    numbers = get_numbers(advice)
    for entered in advice.outcome.entered:
        rows = [_show_trial(entered, trial, numbers) for trial in entered.trials]
        if rows:
            yield entered.method.title, Table(["Setting", "Short", "Whole", "What it is", "Remark"], rows)


def _show_trial(entered: Entered, trial: TrialResult, numbers: Numbers) -> list[str]:
    means = [numbers.show(compute_mean(scores.values())) if scores else UNKNOWN for scores in trial.scores]
    is_chosen = entered.chosen is not None and trial.settings == entered.chosen
    remark = "chosen" if is_chosen else escape_hidden(trial.why_out)
    # As the lines of the contest count them.
    return [str(trial.number + 1), *means, describe_settings(trial.settings), remark]


def list_plan(advice: Advice) -> list[tuple[str, str]]:
    """(name, text) of how much was tried."""
    plan, outcome = advice.outcome.plan, advice.outcome
    cut = ", cut short by its end" if outcome.is_cut else ""
    return [
        ("Time of this machine", f"{format_duration(outcome.seconds)}{cut}"),
        ("Rounds of FedAvg", f"{plan.rounds:,}"),
        ("Settings tried of each method", f"{plan.trials:,}, {plan.kept:,} of them to the end"),
        ("Seeds of these trials", ", ".join(map(str, plan.trial_seeds))),
        ("Methods on fresh seeds", f"{sum(bool(each.runs) for each in outcome.entered):,} of {len(outcome.entered):,}"),
        ("Fresh seeds", f"{len(plan.seeds):,}, up to {plan.most_seeds:,} where that could decide"),
    ]


def explain_doubt(advice: Advice) -> list[str]:
    """How the verdict was reached, for who wants to know."""
    fedavg = ", the best against FedAvg, and FedAvg against training alone" if advice.find(FEDAVG) else ""
    fedavg += ", and whether several models are better than one"
    sentences = [
        "Settings and the best method were chosen on validation examples; results here are on test examples. The best "
        "method is chosen over the fresh seeds that all have, so that none wins by a seed more.",
        "Each difference is paired, and doubted twice: over the seeds, and over the clients. The larger p-value "
        "counts, and a range reaches as far as either.",
        f"The questions are federate or not{fedavg}. Their p-values are corrected by Holm's procedure for an error "
        "rate of 5 % in all, and the ranges are as wide as it asks. So a range without 0 is decided.",
        "To be advised, a method must also be better than any fixed answer.",
    ]
    if count_looks(advice.outcome.plan) > 1:
        sentences.append(
            "Results are looked at twice, each time for half of that rate: after the planned seeds, and after all "
            "further ones, which follow where the first look leaves the question open."
        )
    main = advice.decision.comparisons.get(MAIN)
    units = [sample.unit for sample in main.contrast.samples] if main else []
    number = len(main.contrast.by_client) if main else 0
    if units and CLIENTS not in units:
        sentences.append(
            f"With {count(number, 'client')} nothing can be said of others. Differences are doubted over "
            f"{' and '.join(units)}."
        )
    elif 0 < number < LEAST_CLIENTS and not units:
        sentences.append(
            f"{count(number, 'client')} cannot stand for others, and of {advice.task.title} the test examples show no "
            f"spread; so nothing is decided with fewer than {LEAST_CLIENTS}."
        )
    return sentences
