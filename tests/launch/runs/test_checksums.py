"""Sums speak for what lies in the run folder, and for nothing else."""

import pytest

from launch.runs.checksums import check_sums
from launch.runs.errors import RunFolderError


@pytest.mark.parametrize("name", ["metrics.csv", "models/global/model.keras"])
def test_what_a_link_brings_in_from_outside_is_refused(tmp_path, name):
    run, other = tmp_path / "run", tmp_path / "other"
    for folder in (run, other):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("x")
    check_sums(run, [name])
    (run / name).unlink()
    (run / name).symlink_to(other / name)
    with pytest.raises(RunFolderError, match=f"{name}: lies outside of the run folder"):
        check_sums(run, [name])


def test_the_folder_itself_may_be_reached_by_a_link(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.csv").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    check_sums(tmp_path / "link")
