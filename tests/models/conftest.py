"""Fixtures of the tests of models."""

import pytest


@pytest.fixture(scope="module")
def own_modules(request, tmp_path_factory):
    """A user's modules, importable while the module's tests run: its `OWN_MODULES`, {name: source}."""
    folder = tmp_path_factory.mktemp("own")
    for name, source in request.module.OWN_MODULES.items():
        (folder / f"{name}.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield
