"""What a run folder holds, in a tracker's words."""

import os

import pytest

from launch.runs.tables import write_json
from launch.settings.flags import FlagError
from launch.trackers.run_contents import (
    State,
    describe_run,
    find_state,
    list_files,
    read_rounds_after,
    read_summary,
)


def test_a_run_goes_on_as_long_as_it_holds_its_folder(start_run):
    run = start_run()
    run.add_rounds(1)
    assert find_state(run.run_dir) is State.GOING_ON
    run.end(is_finished=False)
    assert find_state(run.run_dir) is State.STOPPED
    run.end()
    assert find_state(run.run_dir) is State.FINISHED


def test_a_finished_run_that_was_resumed_and_stopped_is_not_finished(start_run):
    run = start_run()
    run.add_rounds(2)
    run.end()
    run.add_rounds(1)
    assert find_state(run.run_dir) is State.STOPPED


def test_a_copied_run_has_no_lock(start_run):
    run = start_run()
    run.add_rounds(2)
    run.end()
    (run.run_dir / ".lock").unlink()
    assert find_state(run.run_dir) is State.FINISHED


def test_parameters_are_the_flags_that_do_something(start_run):
    run = start_run(rounds=7, fedavg_epochs=3, data_dir="/somewhere")
    params = describe_run(run.run_dir).params
    assert params["rounds"] == 7 and params["fedavg_epochs"] == 3
    # Empty, of another data set or partition, places on this machine, requests.
    assert not params.keys() & {
        "workers",
        "har_features",
        "labels_per_client",
        "data_dir",
        "run_dir",
        "resume",
        "track",
    }


def test_the_flags_of_another_version_are_kept_as_they_are(start_run):
    run = start_run()
    write_json(run.run_dir / "config.json", {"flags": {"algo": "gone", "colour": "red", "rounds": 3}})
    description = describe_run(run.run_dir)
    assert description.params == {"algo": "gone", "colour": "red", "rounds": 3}
    assert description.tags["algo"] == "gone" and "seed" not in description.tags


@pytest.mark.parametrize("config", [[], {}, {"flags": 3}, {"flags": {"seed": 0}}])
def test_no_run_is_one_line(config, tmp_path):
    write_json(tmp_path / "config.json", config)
    with pytest.raises(FlagError, match="no run to read there"):
        describe_run(tmp_path)


def test_names_and_tags(start_run):
    name = "fedavg_mnist_alpha0.1/trial_3/seed_4"
    run = start_run(name, seed=4, dataset="mnist")
    description = describe_run(run.run_dir)
    assert description.name == name
    assert description.group.startswith("fedavg_mnist_alpha0.1_")
    expected = {"algo": "fedavg", "dataset": "mnist", "seed": "4", "experiment": "fedavg_mnist_alpha0.1"}
    assert expected.items() <= description.tags.items()
    assert description.tags["data.num_train"] == "30" and description.tags["run_dir"] == str(run.run_dir)


def test_runs_that_differ_in_the_seed_alone_are_a_group(start_run):
    groups = [
        describe_run(start_run(f"run_{i}", **flags).run_dir).group
        for i, flags in enumerate([{"seed": 1}, {"seed": 2, "rounds": 9}, {"seed": 1, "batch_size": 7}])
    ]
    assert groups[0] == groups[1] != groups[2]
    assert groups[0].startswith("fedavg_digits_")


def test_rounds_have_the_numbers_and_times_of_both_tables(start_run):
    run = start_run()
    run.add_rounds(3)
    os.utime(run.run_dir / "metrics.csv", (1000.0, 1000.0))
    first, second, third = read_rounds_after(run.run_dir, 0)
    assert [each.number for each in (first, second, third)] == [1, 2, 3]
    # The last round ended when the table was written, each of the others 2 s before the next.
    assert [each.time_ms for each in (first, second, third)] == [996000, 998000, 1000000]
    assert first.start_ms == 994000
    timing = {"timing/round_s": 1.5, "timing/evaluation_s": 0.5, "timing/host_memory_bytes": 1000.0}
    assert first.values == {"virtual_time_s": 60.0, "test_accuracy": 0.01, **timing}
    assert second.values["test_loss"] == 0.5
    assert read_rounds_after(run.run_dir, 2) == [third]
    assert read_rounds_after(run.run_dir, 3) == []


def test_before_the_first_round_there_is_nothing(start_run):
    assert read_rounds_after(start_run().run_dir, 0) == []


def test_a_damaged_table_is_one_line(start_run):
    run = start_run()
    (run.run_dir / "metrics.csv").write_text("round,test_loss\n1,many\n")
    with pytest.raises(FlagError, match=r"metrics\.csv: damaged"):
        read_rounds_after(run.run_dir, 0)


def test_the_summary_is_flat_and_of_numbers(start_run):
    run = start_run()
    assert read_summary(run.run_dir) == {}
    run.add_rounds(2)
    run.end()
    assert read_summary(run.run_dir) == {"rounds": 2.0, "final.test_accuracy": 0.5}


def test_files(start_run):
    run = start_run()
    run.add_rounds(1)
    run.end()
    for name in ("worker.log", "checkpoints/round_1", "tensorboard/events.out", "report.html", ".7.metrics.csv"):
        path = run.run_dir / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (run.run_dir / "export").mkdir()
    for name in ("report.md", "global.int8.tflite"):
        (run.run_dir / "export" / name).write_text("")
    light = {"config.json", "summary.json", "metrics.csv", "timing.csv", "clients.csv", "report.html"}
    light |= {"plots/by_round.png", "export/report.md"}
    assert set(list_files(run.run_dir, with_models=False)) == light
    every = list_files(run.run_dir, with_models=True)
    assert set(every) == light | {"models/global/model.keras", "export/global.int8.tflite"}
    assert every["export/report.md"] == str(run.run_dir / "export" / "report.md")
