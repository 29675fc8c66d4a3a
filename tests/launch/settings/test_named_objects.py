"""What is certainly missing in a user's module is told without its import; all else is left to that."""

import pytest

from launch.settings.errors import FlagError
from launch.settings.named_objects import check_named

STOPS = "raise RuntimeError('it was run')\n"
SAID = {  # name: (source, what is asked for, what is said)
    "typo": ("def build(shape): pass\n" + STOPS, "bulid", "expected bulid in typo, there is none; did you mean build?"),
    "other": ("def build(shape): pass\n" + STOPS, "loss", "expected loss in other, there is none"),
    "there": ("def build(shape): pass\n" + STOPS, "build", ""),
    "named": ("from elsewhere import net as build\n" + STOPS, "build", ""),
    "starred": ("from elsewhere import *\n" + STOPS, "build", ""),
    "asked": ("def __getattr__(name): pass\n" + STOPS, "build", ""),
    "broken": ("def build(:\n", "build", "importing broken failed: SyntaxError: invalid syntax (broken.py, line 1"),
}


def test_a_name_is_missing_if_neither_the_source_has_it_nor_anything_else_may_make_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for module, (source, name, said) in SAID.items():
        (tmp_path / f"{module}.py").write_text(source)
        if not said:
            check_named(f"{module}:{name}", "--model=x")
            continue
        with pytest.raises(FlagError) as caught:
            check_named(f"{module}:{name}", "--model=x")
        assert str(caught.value).startswith(f"--model=x: {said}")
    with pytest.raises(FlagError, match=r"expected a module, not its file; did you mean there:build\?"):
        check_named("there.py:build", "--model=x")
    with pytest.raises(FlagError, match="--model=x: no module named nowhere_at_all; run from the folder"):
        check_named("nowhere_at_all:build", "--model=x")
