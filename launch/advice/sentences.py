"""The advice in five sentences, for a reader who has federated nothing yet. Imports no TensorFlow.

They say what to do, by how much, with what, at what price, and for whom it is worse. How sure that is they say as a
range, "between 2.1 and 4.9 points"; what a range is made of stands in the details of the page.
"""

import math
from collections.abc import Iterator, Sequence

from launch.advice.choices import FEDAVG
from launch.advice.contrasts import LEAST_CLIENTS
from launch.advice.decision import ALONE, FEDERATE, NOTHING_LEARNED, UNDECIDED
from launch.advice.measures import TRIVIAL, Measured, average_results, counts_answers, is_share
from launch.advice.needs import say_need
from launch.advice.phrases import explain
from launch.advice.questions import OVER_FEDAVG, Comparison, name_rivals
from launch.advice.verdict import Advice
from launch.contests.methods import ALONE as ROLE_ALONE
from launch.contests.methods import POOLED, SHARED
from launch.contests.plan import NO_TIME
from launch.pages.comparison.seed_statistics import LEAST_SEEDS, compute_mean
from launch.pages.report.words import MINUS, NBSP, UNKNOWN, count, show_bytes, show_cell, show_seconds, show_share
from launch.runs.task_columns import TaskColumns

MOST_NAMES = 3
FEW_ROUNDS = 10
DIGITS = 3  # significant ones of a result that is no share


class Numbers:
    """How results of a task are written, all with as many decimals.

    Args:
      task: whose results they are.
      scale: a result beside which the others stand; None if there is none.
    """

    def __init__(self, task: TaskColumns, scale: float | None):
        self._task, self._is_share = task, is_share(task)
        size = math.floor(math.log10(abs(scale))) if scale and math.isfinite(scale) else 0
        self._decimals = max(0, DIGITS - 1 - size)

    def show(self, value: float | None) -> str:
        """A result: "86.3 %", "2.10 K"."""
        if value is None:
            return "unknown"
        if self._is_share:
            return show_share(value)
        return f"{value:,.{self._decimals}f}{NBSP}{self._task.metric.unit}".rstrip()

    def write(self, gain: float) -> str:
        """The size of a gain, without its unit: "2.1"."""
        return f"{100 * abs(gain):.1f}" if self._is_share else f"{abs(gain):,.{self._decimals}f}"

    @property
    def unit(self) -> str:
        """Of a gain: "points", or that of the metric."""
        return "points" if self._is_share else self._task.metric.unit

    def show_gain(self, gain: float) -> str:
        """The size of a gain with its unit: "2.1 points"."""
        unit = "point" if self._is_share and self.write(gain) == "1.0" else self.unit
        return f"{self.write(gain)}{NBSP}{unit}".rstrip()

    def show_ends(self, ends: tuple[float, float] | None) -> str:
        """A range of gains for a cell, without their unit: "2.1 to 4.9", below 0 where it is worse."""
        if ends is None:
            return UNKNOWN
        shown = [self.write(end) for end in ends]
        signs = [MINUS if end < 0 and text.strip("0.") else "" for end, text in zip(ends, shown, strict=True)]
        low, high = map("".join, zip(signs, shown, strict=True))
        return f"{low} to {high}" if low != high else low

    def show_range(self, ends: tuple[float, float] | None) -> str:
        """A range of gains: "2.1 to 4.9 points better", "1.0 points worse to 2.0 points better"."""
        if ends is None:
            return "unknown"
        low, high = ends
        if self.write(low) == self.write(high) and low * high >= 0:
            return f"{self.show_gain(low)} {_side(low)}"
        if low * high >= 0:
            near, far = sorted((low, high), key=abs)
            return f"between {self.write(near)} and {self.show_gain(far)} {_side(far)}"
        return f"between {self.show_gain(low)} worse and {self.show_gain(high)} better"


def _side(gain: float) -> str:
    return "better" if gain >= 0 else "worse"


def say_advice(advice: Advice) -> list[str]:
    """The five sentences."""
    decision = advice.decision
    if decision.over_alone is None:
        return list(_say_nothing_compared(advice))
    say = {FEDERATE: _say_federate, ALONE: _say_alone, NOTHING_LEARNED: _say_nothing_learned}
    return list(say.get(decision.verdict, _say_undecided)(advice))


def get_numbers(advice: Advice) -> Numbers:
    """How the results of the advice are written."""
    known = [each.average() for each in (advice.alone, *advice.methods) if each is not None]
    return Numbers(advice.task, next((value for value in known if value is not None), None))


def _say_federate(advice: Advice) -> Iterator[str]:
    method, decision = advice.judged, advice.decision
    entered = {each.method.name: each.method for each in advice.outcome.entered}
    what = explain(method, entered.get(method.name)) or "your clients do better together than alone"
    yield f"Federate, with {method.title}: {what}."
    rising = ", but training alone was still improving" if advice.alone.name in advice.rising else ""
    yield f"{_say_results(advice, method, advice.alone)}: {_say_lead(advice, decision.over_alone)}{rising}."
    yield _say_beside_fedavg(advice)
    yield f"{_say_cost(method)}."
    yield f"{_say_who(advice)}."


def _say_alone(advice: Advice) -> Iterator[str]:
    method, numbers = advice.judged, get_numbers(advice)
    yield "Do not federate: your clients do better with models that each trains alone."
    low, high = advice.decision.over_alone.ends
    gain = numbers.show_gain(advice.decision.over_alone.contrast.gain)
    results = _say_results(advice, advice.alone, method, "the best federated method")
    yield f"{results}: alone is {gain} better ({_inside(numbers.show_range((-high, -low)))})."
    yield _say_one_model(advice)
    yield f"Training alone sends nothing, while {_say_cost(method, 'would')}."
    yield f"{_say_who(advice)}."


def _say_undecided(advice: Advice) -> Iterator[str]:
    method, alone, lead = advice.judged, advice.alone, advice.decision.over_alone
    if lacks_repeats(advice):
        yield from _say_too_little_time(advice)
    else:
        yield f"Your data cannot tell whether to federate: it is between {method.title} and {_name_alone(alone)}."
        results, numbers = _say_results(advice, method, alone), get_numbers(advice)
        if lead.ends is None:
            number = len(lead.contrast.by_client)
            yield f"{results}; from so few clients no range follows."
            yield f"A verdict needs {LEAST_CLIENTS} clients with test examples, and there are {number}."
        else:
            yield f"{results}: {method.title} is {numbers.show_range(lead.ends)}."
            yield _say_what_is_open(advice, lead)
    until = "train alone" if alone.role == ROLE_ALONE else f"answer {alone.title}"
    yield f"Until you know, {until}: that sends nothing, while {_say_cost(method, 'would')}."
    yield f"{_say_who(advice)}."


def lacks_repeats(advice: Advice) -> bool:
    """Whether nothing is decided since the time ended before there were enough seeds."""
    lead, decision = advice.decision.over_alone, advice.decision
    is_open = decision.verdict == UNDECIDED and lead is not None and lead.ends is None
    return is_open and len(_list_common_seeds(advice)) < LEAST_SEEDS


def _list_common_seeds(advice: Advice) -> list[int]:
    """The seeds on which both were run that are set against each other."""
    return sorted(advice.judged.tests.keys() & advice.alone.tests.keys())


def _say_too_little_time(advice: Advice) -> Iterator[str]:
    method, alone, numbers = advice.judged, advice.alone, get_numbers(advice)
    seeds = _list_common_seeds(advice)
    yield f"Too little time to tell whether to federate: it is between {method.title} and {_name_alone(alone)}."
    reached, beside = (
        numbers.show(average_results({seed: each.tests[seed] for seed in seeds})) for each in (method, alone)
    )
    gain, metric = advice.decision.over_alone.contrast.gain or 0.0, _name_metric(advice)
    metric = metric if metric[:2].isupper() else f"{metric[:1].lower()}{metric[1:]}"
    few = f"only {count(len(seeds), 'repeat')} of both ended in time"
    if gain > 0:
        how = "alone" if alone.role == ROLE_ALONE else _name_alone(alone)
        yield f"{method.title} leads: {reached}, {how} {beside} ({metric}), but {few}."
    elif gain < 0:
        leader = _name_alone(alone)
        yield f"{leader[:1].upper()}{leader[1:]} leads: {beside}, {method.title} {reached} ({metric}), but {few}."
    else:
        yield f"{method.title} and {_name_alone(alone)} both reach {reached} ({metric}), but {few}."
    yield f"A verdict needs {LEAST_SEEDS} repeats: give the same command more --minutes, and it goes on from here."


def _say_what_is_open(advice: Advice, lead: Comparison) -> str:
    numbers = get_numbers(advice)
    if lead.is_decided:
        better, row = advice.judged if lead.is_better else advice.alone, advice.find(advice.decision.trivial)
        fixed = f" ({row.title})" if row else ""
        return f"What is not clear is that {_name_alone(better)} beats a fixed answer{fixed}."
    if lead.is_within(advice.margin):
        return f"They are as good as equal, within {numbers.show_gain(advice.margin)}, which more data will not change."
    return _say_needs(advice, numbers, lead)


def _say_nothing_learned(advice: Advice) -> Iterator[str]:
    method, numbers = advice.judged, get_numbers(advice)
    row, lead = advice.find(advice.decision.trivial), advice.decision.over_trivial
    yield f"Do not use these models: none is clearly better than a fixed answer ({row.title})."
    local = next((each for each in advice.methods if each.role == ROLE_ALONE), None)
    beside = f", {numbers.show(local.average())} when each trains alone" if local else ""
    results = f"{_name_metric(advice)}: {numbers.show(method.average())} with {method.title}{beside}"
    yield f"{results}, {numbers.show(row.average())} with the fixed answer."
    yield f"{method.title} is {numbers.show_range(lead.ends)} than the fixed answer, as far as these data can tell."
    yield _say_needs(advice, numbers, lead)
    yield _say_what_was_hurried(advice) or _say_what_to_check(advice, row, numbers)


def _say_what_was_hurried(advice: Advice) -> str:
    """What more time could change; "" where it was enough for all methods and for more than a few rounds."""
    rounds = advice.outcome.plan.rounds
    left = sum(each.why_out.startswith(NO_TIME) for each in advice.outcome.entered)
    if rounds >= FEW_ROUNDS and not left:
        return ""
    parts = [f"{count(rounds, 'round')} {'is' if rounds == 1 else 'are'} few"] if rounds < FEW_ROUNDS else []
    parts += [f"there was no time for {count(left, 'method')}"] if left else []
    return f"That may be the time's fault: {_join(parts)}, so give more --minutes, with another --runs_dir."


def _say_what_to_check(advice: Advice, row: Measured, numbers: Numbers) -> str:
    pooled = next((each for each in advice.methods if each.role == POOLED), None)
    reached, fixed = (each.average() if each else None for each in (pooled, row))
    if reached is None or fixed is None:
        return "Before you federate, look at your labels and features, or try another model."
    if advice.task.sign * (reached - fixed) > advice.margin:
        return f"A model of all data in one place reaches {numbers.show(reached)}: longer training may help."
    return (
        "Before you federate, look at your labels and features, or try another model: "
        f"even all data in one place reach {numbers.show(reached)}."
    )


def _say_nothing_compared(advice: Advice) -> Iterator[str]:
    names = ", ".join(each.title for each in advice.methods) or "nothing"
    yield "Nothing can be advised yet: the time ended before the methods could be compared."
    yield f"What is missing: {advice.decision.why}."
    yield f"Run on fresh seeds so far: {names}."
    yield "The same command with more --minutes goes on from here."
    yield "Nothing is known yet of who would be worse off."


def _say_results(advice: Advice, first: Measured, second: Measured, role: str = "") -> str:
    """For example "Accuracy on the clients' own test examples: 86.3 % with IFCA, 81.2 % alone"."""
    numbers = get_numbers(advice)
    parts = []
    for each, what in ((first, ""), (second, role)):
        how = f"with {each.title}{f', {what}' if what else ''}"
        how = "when each trains alone" if each.role == ROLE_ALONE else how
        how = f"with {each.title.removeprefix('always ')} always" if each.role == TRIVIAL else how
        parts.append(f"{numbers.show(each.average())} {how}")
    return f"{_name_metric(advice)}: {', '.join(parts)}"


def _name_metric(advice: Advice) -> str:
    lower = "" if advice.task.metric.larger_is_better else " (lower is better)"
    return f"{advice.task.heading} on clients' own test examples{lower}"


def _say_lead(advice: Advice, comparison: Comparison) -> str:
    """For example "5.1 points better (between 2.1 and 8.0)"."""
    numbers, gain = get_numbers(advice), comparison.contrast.gain
    return f"{numbers.show_gain(gain)} {_side(gain)} ({_inside(numbers.show_range(comparison.ends))})"


def _inside(shown: str) -> str:
    """A range in brackets after its gain, whose side is known: without that."""
    return shown if "worse and" in shown else shown.removesuffix(" better").removesuffix(" worse")


def _say_beside_fedavg(advice: Advice) -> str:
    method, decision, numbers = advice.judged, advice.decision, get_numbers(advice)
    fedavg, winner = advice.find(FEDAVG), advice.find(decision.winner)
    if fedavg is None:
        return "FedAvg, the usual method, was not run, so that nothing is said of it."
    made = decision.comparisons.get(OVER_FEDAVG)
    if method is not winner and method is not fedavg:
        return _say_several(advice, winner)
    if method is fedavg and winner is fedavg:
        others = [each.title for each in advice.methods if each.is_federated and each is not fedavg]
        if not others:
            return "No other federated method was run beside FedAvg."
        return f"{_say_no_better(others)} than FedAvg on validation examples of the same runs."
    if method is fedavg and made.is_worse:
        return f"{winner.title} did best on validation examples, but FedAvg is better on test examples."
    if method is fedavg and made.is_better:
        shown = numbers.show_range(made.ends)
        return f"{winner.title} is {shown} than FedAvg, but not itself clearly better than {_name_alone(advice.alone)}."
    if method is fedavg and made.ends is None:
        return f"{winner.title} did best on validation examples, but too few repeats of it ended in time to advise it."
    if method is fedavg:
        shown = numbers.show_range(made.ends)
        return f"{winner.title} cannot be told apart from FedAvg (it is {shown}), so take the simpler FedAvg."
    over = decision.over_fedavg
    if over and over.is_better:
        several = "" if method.role == SHARED else ": one model for all is not enough"
        shown = numbers.show_range(over.ends)
        return f"It is {shown} than FedAvg ({numbers.show(fedavg.average())}){several}."
    if over and over.ends is None:
        return f"Too few repeats ended in time to set it against FedAvg ({numbers.show(fedavg.average())})."
    return (
        f"It cannot be told apart from FedAvg ({numbers.show(fedavg.average())}), "
        f"but FedAvg is not clearly better than {_name_alone(advice.alone)}."
    )


def _say_no_better(titles: Sequence[str]) -> str:
    return f"{_join(titles)} {'was' if len(titles) == 1 else 'were'} no better"


def _say_several(advice: Advice, winner: Measured) -> str:
    """Of a method with several models that is advised, though another did best on validation examples."""
    method, numbers = advice.judged, get_numbers(advice)
    one = winner if winner.role == SHARED else advice.find(FEDAVG)
    shown = numbers.show_range(advice.decision.comparisons[name_rivals(method.name, one.name)].ends)
    if one is winner:
        return (
            f"{one.title}, one model for all, did best on validation examples, but on test examples {method.title} "
            f"is {shown}."
        )
    return (
        f"It is {shown} than {one.title} ({numbers.show(one.average())}), one model for all; {winner.title} did best "
        "on validation examples, but is not clearly better."
    )


def _say_one_model(advice: Advice) -> str:
    numbers, parts = get_numbers(advice), []
    for name, what in ((FEDAVG, "FedAvg, one model for all,"), (POOLED, "a model of all data in one place")):
        found = advice.find(name)
        if found is not None and found is not advice.judged:
            parts.append(f"{what} reaches {numbers.show(found.average())}")
    text = " and ".join(parts) or "no other federated method was better on validation examples of the same runs"
    return f"{text[:1].upper()}{text[1:]}."


def _say_cost(method: Measured, would: str = "") -> str:
    cost, parts = method.cost, []
    verb = "would cost" if would else "costs"
    if cost.bytes is not None:
        parts.append(f"{show_bytes(cost.bytes)} of traffic a client")
    if cost.seconds is not None:
        tuning = f" with {show_seconds(cost.fine_tuning_s)} of fine-tuning" if cost.fine_tuning_s else ""
        parts.append(f"{show_seconds(cost.seconds)} of device time{tuning}")
    spent = " and ".join(parts) or "an unknown amount"
    return f"{method.title} {verb} {spent}, in {count(round(cost.rounds), 'round')}"


def _say_who(advice: Advice) -> str:
    """For whom it is worse, how the worst tenth does, and what new clients get."""
    method, alone, numbers = advice.judged, advice.alone, get_numbers(advice)
    number = len(advice.decision.over_alone.contrast.by_client)
    losers, than = advice.worse_off, f"with {method.title} than with {_name_alone(alone)}"
    clearly = "" if counts_answers(advice.task) else "clearly "
    if not losers:
        text = f"No client was {clearly}worse off {than}"
    elif len(losers) == number:
        text = f"Every client was {clearly}worse off {than}"
    else:
        were = "was" if len(losers) == 1 else "were"
        text = f"{len(losers):,} of {count(number, 'client')} {were} {clearly}worse off {than}{_say_losers(advice)}"
    worst = [numbers.show(each.average_worst_tenth(advice.task)) for each in (method, alone)]
    beside = "alone" if alone.role == ROLE_ALONE else "with the fixed answer"
    text += f"; the worst-off tenth reaches {worst[0]}, {beside} {worst[1]}"
    if method.new and (reached := average_results(method.new)) is not None:
        new = max(len(each) for each in method.new.values())
        text += f", and {count(new, 'new client')} {'reaches' if new == 1 else 'reach'} {numbers.show(reached)} with it"
    return text


def _say_losers(advice: Advice) -> str:
    """Who is worse off, and by how much: " (site 0 by 5 answers of 60 and site 1 by 1 answer of 60)"."""
    lost = {name: _say_lost(advice, name) for name in advice.worse_off}
    if advice.judged.is_natural:
        return f" ({_list_names([show_cell(name) + (f' by {text}' if text else '') for name, text in lost.items()])})"
    worst = next(iter(lost.values()))
    return f" (at most by {worst})" if worst else ""


def _say_lost(advice: Advice, name: str) -> str:
    """How many answers fewer of a client were right, of all in all repeats; "" where that cannot be counted."""
    size = advice.judged.sizes.get(name, 0) * len(_list_common_seeds(advice))
    if not size or not counts_answers(advice.task):
        return ""
    lost = -advice.decision.over_alone.contrast.by_client[name] * size
    return f"{count(max(1, round(lost)), 'answer')} of {round(size):,}"


def _list_names(shown: Sequence[str]) -> str:
    more = len(shown) - MOST_NAMES
    return f"{', '.join(shown[:MOST_NAMES])} and {more:,} more" if more > 0 else _join(shown)


def _join(words: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _name_alone(alone: Measured) -> str:
    fixed = f"{alone.title.removeprefix('always ')} always"
    return "training alone" if alone.role == ROLE_ALONE else fixed if alone.role == TRIVIAL else alone.title


def _say_needs(advice: Advice, numbers: Numbers, comparison: Comparison) -> str:
    gain = max(abs(comparison.contrast.gain or 0.0), advice.margin)
    sizes = list(advice.judged.sizes.values())
    needed = say_need(list(advice.needs), compute_mean(sizes) if sizes else None)
    if not needed:
        return "More data of the same kind would be needed to tell; how much, these runs do not show."
    return f"To tell a difference of {numbers.show_gain(gain)} would {needed}."
