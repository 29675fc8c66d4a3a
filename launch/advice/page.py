"""Writes `advice.html`: a page that says first what to do. It loads nothing and runs no script. No TensorFlow."""

import pathlib

from files.writing import write_text
from launch.advice.commands import list_commands
from launch.advice.decision import ALONE, FEDERATE, NOTHING_LEARNED
from launch.advice.details import (
    explain_doubt,
    list_left_out,
    list_marks,
    list_plan,
    list_settings,
    tabulate_clients,
    tabulate_comparisons,
    tabulate_lengths,
    tabulate_methods,
    tabulate_models,
    tabulate_trials,
)
from launch.advice.picture import draw_methods
from launch.advice.sentences import lacks_repeats, say_advice
from launch.advice.verdict import Advice
from launch.console.progress import format_duration
from launch.console.shown_text import escape_hidden
from launch.pages.report.page import NO_SCRIPT, STYLE
from launch.pages.report.words import count
from launch.pages.templates import compute_digest, format_policy, render

OWN_STYLE = pathlib.Path(__file__).with_name("advice.css")
WORDS = {FEDERATE: "Federate", ALONE: "Train alone", NOTHING_LEARNED: "Nothing learned"}
UNDECIDED_WORDS, TOO_LITTLE_TIME = "Cannot tell yet", "Too little time"


def write_page(advice: Advice, path: pathlib.Path) -> None:
    """Writes the page. Raises OSError: it cannot be written."""
    write_text(path, assemble_page(advice))


def assemble_page(advice: Advice) -> str:
    """The page's HTML."""
    style = "\n".join(["", *(path.read_text(encoding="utf-8") for path in (STYLE, OWN_STYLE))])
    outcome = advice.outcome
    of_runs = next((each.notes for each in advice.methods if each.notes), ())
    about = f"{_say_how_many(advice)} in {format_duration(outcome.seconds)} on this machine"
    return render(
        "advice/advice.html.j2",
        title=f"Should {escape_hidden(outcome.problem.name)} be federated?",
        policy=format_policy([], compute_digest(style), NO_SCRIPT),
        style=style,
        about=about,
        verdict=WORDS.get(advice.decision.verdict, TOO_LITTLE_TIME if lacks_repeats(advice) else UNDECIDED_WORDS),
        kind=advice.decision.verdict.replace(" ", "-"),
        sentences=say_advice(advice),
        picture=draw_methods(advice),
        alone=advice.alone,
        methods=tabulate_methods(advice),
        settings=list_settings(advice),
        marks=list_marks(advice),
        commands=list(list_commands(advice)),
        doubts=explain_doubt(advice),
        comparisons=tabulate_comparisons(advice),
        clients=tabulate_clients(advice),
        lengths=tabulate_lengths(advice) if advice.methods else None,
        models=tabulate_models(advice),
        plan=list_plan(advice),
        trials=list(tabulate_trials(advice)),
        left_out=list_left_out(advice),
        notes=list(dict.fromkeys((*advice.notes, *of_runs))),
    )


def _say_how_many(advice: Advice) -> str:
    """For example "9 methods tried, 4 of them compared on fresh seeds"."""
    entered = advice.outcome.entered
    tried, compared = (
        sum(map(bool, each)) for each in ([e.trials or e.runs for e in entered], [e.runs for e in entered])
    )
    if compared == tried:
        return f"{count(tried, 'method')} tried and compared on fresh seeds"
    return f"{count(tried, 'method')} tried, {compared:,} of them compared on fresh seeds"
