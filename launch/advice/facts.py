"""Writes `advice.json`: what the page says, for programs. Imports no TensorFlow."""

import os
import pathlib
from typing import Any

from launch.advice.commands import list_commands
from launch.advice.measures import Measured, average_results
from launch.advice.questions import Comparison
from launch.advice.sentences import say_advice
from launch.advice.verdict import Advice
from launch.contests.contest import Entered
from launch.runs.tables import write_json


def write_facts(advice: Advice, path: pathlib.Path) -> None:
    """Writes the file. Raises OSError: it cannot be written."""
    write_json(path, collect_facts(advice))


def collect_facts(advice: Advice) -> dict[str, Any]:
    """The facts: names of methods are those of their folders, gains are positive where the first method is better."""
    decision, outcome = advice.decision, advice.outcome
    return {
        "problem": outcome.problem.name,
        "arguments": list(outcome.problem.arguments),
        "verdict": decision.verdict,
        "advised": decision.advised,
        "winner": decision.winner,
        "alone": decision.alone,
        "trivial": decision.trivial,
        "sentences": [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in say_advice(advice)],
        "commands": [{"for": what, "command": command} for what, command in list_commands(advice)],
        "metric": advice.task.of_client,
        "larger_is_better": advice.task.sign > 0,
        "comparisons": {name: _describe_comparison(each) for name, each in decision.comparisons.items()},
        "over_alone": _describe_comparison(decision.over_alone),
        "over_fedavg": _describe_comparison(decision.over_fedavg),
        "needs": [need._asdict() for need in advice.needs],
        "worse_off": list(advice.worse_off),
        "notes": list(advice.notes),
        "methods": {each.name: _describe_method(advice, each) for each in (*advice.methods, *advice.rows)},
        "entered": {each.method.name: _describe_entered(each) for each in outcome.entered},
        "plan": outcome.plan._asdict(),
        "limits": {name: limits._asdict() for name, limits in outcome.limits.items()},
        "seconds": outcome.seconds,
        "is_cut": outcome.is_cut,
    }


def _describe_comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    low, high = comparison.ends or (None, None)
    return {
        "first": comparison.first,
        "second": comparison.second,
        "gain": comparison.contrast.gain,
        "low": low,
        "high": high,
        "p_value": comparison.contrast.p_value,
        "decided_below": comparison.rate,
        "is_decided": comparison.is_decided,
    }


def _describe_method(advice: Advice, each: Measured) -> dict[str, Any]:
    return {
        "title": each.title,
        "role": each.role,
        "mean": each.average(),
        "worst_tenth": each.average_worst_tenth(advice.task),
        "new_clients": average_results(each.new),
        "over_alone": _describe_comparison(advice.beside_alone.get(each.name)),
        "settings": dict(each.settings),
        "cost": each.cost._asdict() if each.runs else None,
        "marks": advice.marks.get(each.name, []),
        "runs": {str(seed): os.fspath(path) for seed, path in each.runs.items()},
    }


def _describe_entered(each: Entered) -> dict[str, Any]:
    trials = [
        {"settings": dict(trial.settings), "scores": [{str(s): v for s, v in rung.items()} for rung in trial.scores]}
        for trial in each.trials
    ]
    return {"chosen": None if each.chosen is None else dict(each.chosen), "why_out": each.why_out, "trials": trials}
