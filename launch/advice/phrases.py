"""What each method does, in a few words that go on after its name. Imports no TensorFlow."""

from launch.advice.measures import Measured
from launch.contests.methods import Method

ONE = "one model for all"
# "{models}" is "three models", as many as its clients have in the end.
WORDS = {
    "fedavg": ONE,
    "fedadam": ONE,
    "fedyogi": ONE,
    "fedavgm": ONE,
    "scaffold": ONE,
    "fednova": ONE,
    "moon": ONE,
    "async_periodic": f"{ONE}, and no client waits for a slower one",
    "fed_async": f"{ONE}, and no client waits for a slower one",
    "buffered": f"{ONE}, and no client waits for a slower one",
    "ifca": "{models}, and each client uses the one that fits it",
    "fedcd": "{models}, and each client uses the one that fits it",
    "cfl": "{models}, one for each group of clients that learn alike",
    "fl_hc": "{models}, one for each group of clients that learn alike",
    "fedsikd": f"{ONE}, taught in groups of clients with similar data",
    "random_cluster": f"{ONE}, taught in groups of clients that are drawn",
    "oracle": "{models}, one for each group that the data name",
    "amfl_p": "one model for all, which each client fits to its own data",
    "fine_tuning": "one model for all, which each client fits to its own data",
    "ditto": "each client has a model of its own, kept near a common one",
    "pfedme": "each client has a model of its own, kept near a common one",
    "apfl": "each client mixes a model of its own with a common one",
    "partial": "one part of the model is common, the other is each client's own",
    "fedproto": "each client has a model of its own, and they share what classes look like",
}
TUNED = ", fitted at the end to each client's own data"
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def explain(measured: Measured, method: Method | None) -> str:
    """What the method does, such as "three models, and each client uses the one that fits it"; "" of own algorithms."""
    words = WORDS.get(method.algo, "") if method else ""
    if "{models}" in words and set(measured.models.values()) == {1}:
        words = ONE  # it made no groups
    text = words.format(models=_count_models(measured))
    steps = dict(flag.removeprefix("--").partition("=")[::2] for flag in method.fixed) if text else {}
    is_tuned = {**steps, **measured.settings}.get("final_steps", "0") != "0"
    return f"{text}{TUNED}" if is_tuned and text else text


def _count_models(measured: Measured) -> str:
    numbers = set(measured.models.values())
    if len(numbers) != 1:
        return "several models"
    number = numbers.pop()
    return f"{NUMBERS[number - 2] if number - 2 < len(NUMBERS) else f'{number:,}'} models"
