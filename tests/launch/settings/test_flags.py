"""The command line: every mistake is one line, quickly and without TensorFlow."""

import json
import pathlib
import subprocess
import sys

import pytest

from launch.settings.flags import FlagError, parse_config, parse_given

ROOT = pathlib.Path(__file__).parents[3]

MISTAKES = {
    "": "--algo is missing: expected --algo=<fedavg|",
    "--algo=nope": "--algo=nope: expected one of fedavg",
    "--algo=fedavgg": "did you mean fedavg?",
    "--algo=fedsikd --temperature=-1": "--temperature=-1: expected a number above 0",
    "--algo=fedavg --learning_rate=nan": "--learning_rate=nan: expected a number above 0",
    "--algo=fedavg --learning_rate=inf": "--learning_rate=inf: expected a number above 0",
    "--algo=fedavg --rounds=abc": "--rounds=abc: expected an integer at least 1",
    "--algo=fedavg --rounds=1.5": "--rounds=1.5: expected an integer at least 1",
    "--algo=fedavg --rounds=0": "--rounds=0: expected an integer at least 1",
    "--algo=fedavg --rounds": "--rounds: no value, expected --rounds=<value>",
    "--algo=fedavg --resume=maybe": "--resume=maybe: expected true or false",
    "--algo=fedavg --dataset=minst": "did you mean mnist?",
    "--algo=fedavg --roundz=3": "--roundz: unknown flag; did you mean --rounds?",
    "--algo=fedavg --xyzzyx=3": "--xyzzyx: unknown flag; --helpfull lists them all",
    "--algo=fedavg stray": "stray: expected flags only",
    "--algo=fedavg --num_clusters=3": "--num_clusters: belongs to --algo=fedsikd and 2 more",
    "--algo=fedavg --learningrate=1": "did you mean --learning_rate",
    "--algo=random_cluster --cluster_sizes=equal --statistics=scalar": ("--cluster_sizes=kmeans"),
    "--algo=random_cluster --cluster_sizes=equal --num_clusters=0": ("--num_clusters=0: expected"),
    "--algo=fl_hc --num_clusters=4": "--distance_multiple=0",
    "--algo=fedavg --precision=bfloat16 --quantize=qat": "--precision=bfloat16: expected float32 with --quantize=qat",
    "--algo=fedavg --precision=float16": "--precision=float16: expected one of float32, bfloat16",
    "--algo=fedavg --width=0.5": "--width=0.5: expected 1, or --model=image_cnn10 or image_cnn10_gn or mobilenet_v2",
    "--algo=fedavg --model=nope": "--model=nope: expected auto",
    "--flagfile=/nowhere/x.flags": "cannot read the flagfile /nowhere/x.flags: No such file",
    "--algo=fedavg --resume": "expected --run_dir",
    "--algo=fedavg --resume --run_dir=/nowhere": "--run_dir=/nowhere: no run to read there",
    "--algo=fedavg --workers=here:1": "--workers: TFF's workers on other machines are no more; for several machines",
    "--algo=fedavg --runtime=spark": "--runtime=spark: expected one of in_process, tff, ray",
    "--algo=fedavg --device=tpu": "--device=tpu: expected one of cpu, gpu, auto",
    "--algo=fedavg --runtime=tff --device=gpu": "--device=gpu: expected cpu with --runtime=tff",
    "--algo=fedavg --runtime=ray --device=auto": "--device=auto: expected cpu with --runtime=ray",
    "--algo=fedavg --runtime=tff --ray_shares=3": "--ray_shares: does nothing with --runtime=tff",
    "--algo=fedavg --seed=-1": "--seed=-1: expected an integer at least 0 and at most 1000000000",
    "--algo=fedavg --rounds=1000001": "expected an integer at least 1 and at most 1000000",
    "--algo=fedavg --npz=mine.npz": "--npz=mine.npz: expected a file together with --dataset=npz",
    "--algo=fedavg --partition=iid --dirichlet_alpha=0.1": "--dirichlet_alpha: does nothing with --partition=iid",
    "--algo=fedavg --labels_per_client=3": "leave it out, or give --partition=shards",
    "--algo=fedavg --partition=hierarchical --num_clients=20": "or give --clients_per_archetype in its place",
    "--algo=fedavg --partition=hierarchical --test_fraction=0.1": "or give --test_per_client in its place",
    "--algo=fedavg --train_per_client=50": "--train_per_client: does nothing with --partition=dirichlet",
    "--algo=fedavg --partition=hypergeometric --bias_min=0.1": "--bias_min: does nothing with --partition=hyperg",
    "--algo=fedavg --partition=hierarchical --hypergeometric_draws=10": "or give --partition=hypergeometric",
    "--algo=fedavg --partition=hierarchical --bias_max=2": "--bias_max=2: expected a number at least 0 and at most 1",
    "--algo=fedavg --partition=hierarchical --bias_max=0.5": "--bias_min=0.6: expected at most --bias_max=0.5",
    "--algo=fedavg --har_features=inertial": "--har_features: does nothing with --dataset=digits",
    "--algo=fedavg --building_num_sensors=9": "--building_num_sensors: does nothing with --dataset=digits",
    "--algo=fedavg --building_csv=x.csv": "--building_csv: does nothing with --dataset=digits",
    "--algo=fedavg --dataset=building --building_csv=x.csv --smoke": "--building_csv: does nothing with --smoke=True",
    "--algo=fedavg --dataset=building --building_num_sensors=0": "expected an integer at least 1 and at most 100000",
    "--algo=fedavg --dataset=building --building_heterogeneity=hi": "expected one of low, medium, high",
    "--algo=fedavg --dataset=building --occupancy_features=all": "does nothing with --dataset=building",
    "--algo=fedavg --occupancy_client_hours=6": "leave it out, or give --dataset=occupancy",
    "--algo=fedavg --epochs=3 --steps=9": "--epochs: does nothing with --steps=9",
    "--algo=fedsikd --teacher_epochs=3 --teacher_steps=9": "with --teacher_steps=9",
    "--algo=fedsikd --max_clusters=5": "does nothing with --num_clusters=3",
    "--algo=async_periodic --gamma=0.5": "leave it out, or give --weighting=age_aware",
    "--algo=async_periodic --gamma=0": "--gamma=0: expected a number above 0",
    "--algo=async_periodic --max_scheduled=0": "expected an integer at least 1",
    "--algo=fedavg --rounds=1_0": "--rounds=1_0: expected an integer at least 1 and at most 1000000",
    "--algo=fedavg --rounds=\u0663": "expected an integer at least 1 and at most 1000000",
    "--algo=fedavg --dirichlet_alpha=1_0.5": "--dirichlet_alpha=1_0.5: expected a number above 0",
    "--algo=async_periodic --num_clients=0": "--num_clients=0: expected an integer at least 1",
    "--algo=async_periodic --period_fraction=0": "expected a number above 0",
    "--algo=async_periodic --scheduling=best": "expected one of random, significance, frequency",
    "--algo=async_periodic --max_away_s=3": "does nothing with --dropout=0.0",
    "--algo=async_periodic --availability_share=0.5": "--availability_cycle_s=0.0",
    "--algo=fed_async --staleness_grace=2": "does nothing with --staleness=polynomial",
    "--algo=fl_hc --distance_multiple=0 --num_clusters=2 --distance_threshold=1": ("--num_clusters: does nothing"),
    "--algo=fedcd --milestones=9,5": "--milestones=9,5: expected rounds in ascending order with commas",
    "--algo=fedcd --rounds=29": "--milestones=5,15,25,30: expected rounds up to the last one, --rounds=29",
    "--algo=fedcd --compression_bits=17": "=17: expected 2 to 16, or 32 for no compression",
    "--algo=fedcd --compression_bits=1": "=1: expected 2 to 16, or 32 for no compression",
    "--algo=fedcd --compression_bits=33": "=33: expected 2 to 16, or 32 for no compression",
    "--algo=fedcd --compression_rounding=nearest": "does nothing with --compression_bits=32",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_mistake_is_named_in_one_line(refuse, arguments):
    assert MISTAKES[arguments] in refuse(arguments)


def run_train(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "launch.train", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("arguments", ["--algo=nope", "--algo=fedavg --num_clusters=3"])
def test_program_answers_a_mistake_with_exit_code_2(arguments):
    done = run_train(*arguments.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["--help"], ["--algo=fedavg", "--rounds=0"]])
def test_answer_needs_no_heavy_library(arguments):
    """Without these it takes a fraction of a second."""
    program = f"""
import contextlib, io, sys
from launch.train import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main({arguments!r})
heavy = {{"numpy", "tensorflow", "tensorflow_federated", "sklearn", "scipy", "matplotlib", "jax"}} & set(sys.modules)
print(sorted(heavy))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_flagfile_may_hold_comments_and_the_last_value_wins(tmp_path):
    path = tmp_path / "x.flags"
    path.write_text("# the paper's Table V\n--algo=fedavg\n\n--rounds=7\n--epochs=2\n")
    config = parse_config([f"--flagfile={path}", "--rounds=8"])
    assert (config.algo, config.rounds, config.algorithm.training.epochs) == ("fedavg", 8, 2)


def test_only_given_flags_are_given():
    assert parse_given(["--algo=fedavg", "--nosmoke"]) == {"algo": "fedavg", "smoke": False}


RUN = {"rounds": 5, "seed": 3, "epochs": 2}


def test_resume_takes_the_flags_of_the_run(store_run, tmp_path):
    config = parse_config([*store_run(RUN), "--rounds=9"])
    assert (config.algo, config.seed, config.rounds, config.algorithm.training.epochs) == ("fedavg", 3, 9, 2)
    assert config.resume and config.run_dir == str(tmp_path / "run")


def test_flags_of_a_flagfile_may_be_made_idle_by_others(tmp_path):
    path = tmp_path / "x.flags"
    path.write_text("--algo=fedavg\n--partition=dirichlet\n--dirichlet_alpha=0.1\n--epochs=2\n")
    config = parse_config([f"--flagfile={path}", "--partition=iid", "--steps=9"])
    assert (config.partition, config.algorithm.training.steps) == ("iid", 9)


@pytest.mark.parametrize(
    "flags",
    [
        None,
        [],
        "fedavg",
        {"algo": []},
        {"algo": "fedavg", "rounds": "many"},
        {"algo": "fedavg", "rounds": True},
        {"algo": "fedavg", "rounds": -1},
        {"algo": "fedavg", "smoke": 1},
        {"algo": "fedavg", "learning_rate": None},
    ],
)
def test_resume_of_a_damaged_config_is_refused(tmp_path, flags):
    (tmp_path / "config.json").write_text(json.dumps({"flags": flags}))
    with pytest.raises(FlagError, match="run_dir"):
        parse_config(["--resume", f"--run_dir={tmp_path}"])


def test_resume_with_other_settings_names_them(store_run, refuse):
    resume = store_run(RUN)
    assert "--seed=4 (the run has 3), --epochs=1 (the run has 2)" in refuse([*resume, "--seed=4", "--epochs=1"])
    assert "--algo=fl_hc (the run has fedavg)" in refuse([*resume, "--algo=fl_hc"])


@pytest.mark.parametrize(
    ("values", "lacking", "then", "now"),
    [
        ({}, ("runtime", "device"), ("tff", "cpu"), "--runtime=in_process (the run has tff)"),
        (
            {"dataset": "npz", "npz": "mine.npz"},
            ("layout", "scale"),
            ("as_stored", "bytes"),
            "--scale=none (the run has bytes)",
        ),
    ],
)
def test_a_run_from_before_there_were_settings_goes_on_as_then(store_run, refuse, values, lacking, then, now):
    resume = store_run(values, lacking)
    for repeated in ([], [f"--{name}={value}" for name, value in zip(lacking, then, strict=True)]):
        config = parse_config([*resume, *repeated])
        assert tuple(getattr(config, name) for name in lacking) == then
    assert f"other settings: {now}" in refuse([*resume, now.split()[0]])


def test_a_run_from_before_there_were_layouts_is_like_those_of_today_if_it_has_no_file(store_run):
    config = parse_config(store_run({}, ("layout", "scale")))
    assert (config.layout, config.scale) == ("auto", "auto")


def test_a_run_on_workers_elsewhere_is_refused_in_one_line_and_one_without_them_goes_on(store_run, refuse):
    assert parse_config(store_run({"runtime": "tff"}, workers="")).runtime == "tff"
    said = refuse(store_run({"runtime": "tff"}, workers="a:1,b:2"))
    assert "was made with --workers=a:1,b:2: TFF's workers" in said and "--runtime=ray; start a new" in said


def test_a_resumed_run_keeps_its_runtime_and_its_device(store_run, refuse):
    resume = store_run({"runtime": "in_process", "device": "gpu"})
    for arguments in (resume, [*resume, "--device=auto"]):  # auto was settled when the run began
        config = parse_config(arguments)
        assert (config.runtime, config.device) == ("in_process", "gpu")
    assert refuse([*resume, "--device=cpu"]) and refuse([*resume, "--runtime=tff"])


def test_resume_of_a_run_of_another_version_is_refused(store_run, refuse):
    assert "unknown flags" in refuse(store_run({}, fedavg_gone=1))
    assert "gone" in refuse(store_run({}, algo="gone"))
