"""What is said of a run on text beside its accuracy."""

import numpy as np
import pytest

from launch.training.text_baselines import say_text_baselines


def summarise(reached, **further):
    return {
        "task": "next_token",
        "final": {"test_token_accuracy": reached},
        "token_baselines": {"unigram_accuracy": 0.2, "bigram_accuracy": 0.3},
        **further,
    }


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        (0.1, "has learned nothing"),
        (np.nan, "has learned nothing"),
        (None, "has learned nothing"),
        (0.25, "not learned more than which token follows which"),
        (0.4, None),
    ],
)
def test_a_model_is_held_against_the_tables(reached, expected, capsys):
    say_text_baselines(summarise(reached))
    lines = capsys.readouterr().out.splitlines()
    assert "most frequent token 0.2000" in lines[0] and lines[0].endswith("0.3000")
    assert [expected in line for line in lines[1:]] == ([True] if expected else [])


def test_nothing_is_said_of_other_runs(capsys):
    say_text_baselines({"final": {"test_accuracy": 0.5}})
    assert capsys.readouterr().out == ""
