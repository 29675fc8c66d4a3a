"""The command line: every mistake is one line, quickly and without TensorFlow."""

import codecs
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import pytest

from launch.runs.run_records import list_other_settings
from launch.settings.algorithms import ALGORITHMS
from launch.settings.data_flags import HUBER
from launch.settings.flag_parsing import expand_flagfiles
from launch.settings.flags import FlagError, parse_config, parse_given, read_stored_flags
from launch.settings.run_config import algorithm_fields, build_run_config, find_idle, shared_fields
from launch.settings.suggestions import OTHER_NAMES, suggest_flags, suggest_integer, suggest_value
from models.task_kinds import LOSSES, TASK_NAMES
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

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
    "--algo=fedavg --port=80": "--port: is a flag of launch.serve, which takes those of launch.train, too",
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


OWN = "--algo=fedavg --dataset=npz --npz=my.npz --partition=iid"
MISTAKES |= {
    f"--algo=fedavg {' '.join(f'--fedavg_server_{flag}' for flag in flags.split())}": reason
    for flags, reason in {
        "beta_1=0.5": "does nothing with --server_optimizer=sgd",
        "epsilon=0.5": "give --server_optimizer=adam or yogi or adagrad or rmsprop",
        "nesterov": "does nothing with --server_momentum=0.0; leave it out, or give",
        "optimizer=adam momentum=0.5": "give --server_optimizer=sgd or rmsprop",
        "optimizer=rmsprop momentum=0.5 nesterov": "give --server_optimizer=sgd",
        "optimizer=adam initial_accumulator=1": "give --server_optimizer=adagrad",
        "optimizer=adam decay=0.5": "give --server_optimizer=rmsprop",
        "momentum=1": "a number at least 0 and below 1",
        "optimizer=adam epsilon=0": "a number above 0",
        "optimizer=lamb": "one of sgd, adam, yogi, adagrad, rmsprop",
    }.items()
}
MISTAKES |= {
    "--algo=fedavg --dataset=digits --task=binary": "--task: does nothing with --dataset=digits",
    "--algo=fedavg --loss=hubert": (
        "--loss=hubert: expected one of auto, cross_entropy, squared, absolute, huber, or your own as module:function"
    ),
    f"{OWN} --task=ranking": "--task=ranking: expected one of auto, classification, binary",
    f"{OWN} --huber_delta=2": "--huber_delta: does nothing with --loss=auto; leave it out, or give --loss=huber",
    f"{OWN} --loss=huber --huber_delta=0": "--huber_delta=0: expected a number above 0",
    f"{OWN} --channel_axis": "--channel_axis: does nothing with --model=auto",
    f"{OWN} --target_metric=-1": "--target_metric=-1: expected a number at least 0",
    f"{OWN} --target_metric=1 --target_accuracy=0.5": "either --target_accuracy or --target_metric, not both",
    f"{OWN} --target_metric=9 --dp_epsilon=2 --client_weighting=equal": (
        "0 with private updates: a result without noise"
    ),
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_mistake_is_named_in_one_line(refuse, arguments):
    assert MISTAKES[arguments] in refuse(arguments)


def test_answers_need_no_heavy_library():
    """Without these they take a fraction of a second."""
    program = """
import contextlib, io, sys
from launch.train import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main(["--help"]), main(["--algo=fedavg", "--rounds=0"])
heavy = {"numpy", "tensorflow", "tensorflow_federated", "sklearn", "scipy", "matplotlib", "jax"} & set(sys.modules)
print(sorted(heavy))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_flagfile_may_hold_comments_and_the_last_value_wins_and_may_make_others_idle(tmp_path):
    path = tmp_path / "x.flags"
    path.write_text(
        "# Table V\n--algo=fedavg\n\n--rounds=7\n--epochs=2\n--partition=dirichlet\n--dirichlet_alpha=0.1\n"
    )
    config = parse_config([f"--flagfile={path}", "--rounds=8", "--partition=iid", "--steps=9"])
    found = (config.algo, config.rounds, config.partition, config.algorithm.training)
    assert found == ("fedavg", 8, "iid", LocalTrainingConfig(epochs=2, steps=9))
    assert parse_given(["--algo=fedavg", "--nosmoke"]) == {"algo": "fedavg", "smoke": False}


RUN = {"rounds": 5, "seed": 3, "epochs": 2}


DAMAGED = (None, [], "fedavg", {"algo": []})
DAMAGED_VALUES = ({"rounds": "many"}, {"rounds": True}, {"rounds": -1}, {"smoke": 1}, {"learning_rate": None})


@pytest.mark.parametrize("flags", [*DAMAGED, *({"algo": "fedavg", **each} for each in DAMAGED_VALUES)])
def test_resume_of_a_damaged_config_is_refused(tmp_path, flags):
    (tmp_path / "config.json").write_text(json.dumps({"flags": flags}))
    with pytest.raises(FlagError, match="run_dir"):
        parse_config(["--resume", f"--run_dir={tmp_path}"])


def test_resume_takes_the_flags_of_the_run_and_names_others(store_run, refuse, tmp_path):
    resume = store_run(RUN)
    config = parse_config([*resume, "--rounds=9"])
    assert (config.algo, config.seed, config.rounds, config.algorithm.training.epochs) == ("fedavg", 3, 9, 2)
    assert config.resume and config.run_dir == str(tmp_path / "run")
    assert "--seed=4 (the run has 3), --epochs=1 (the run has 2)" in refuse([*resume, "--seed=4", "--epochs=1"])
    assert "--algo=fl_hc (the run has fedavg)" in refuse([*resume, "--algo=fl_hc"])
    assert "unknown flags" in refuse(store_run({}, fedavg_gone=1))
    assert "gone" in refuse(store_run({}, algo="gone"))


@pytest.mark.parametrize(
    ("values", "lacking", "then", "now"),
    [
        ({}, ("runtime", "device"), ("tff", "cpu"), "--runtime=in_process (the run has tff)"),
        ({}, ("layout", "scale"), ("auto", "auto"), ""),  # without a file it is like those of today
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
    for repeated in ([], [f"--{name}={value}" for name, value in zip(lacking, then, strict=True)] if now else []):
        config = parse_config([*resume, *repeated])
        assert tuple(getattr(config, name) for name in lacking) == then
    assert not now or f"other settings: {now}" in refuse([*resume, now.split()[0]])


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


NEW_FLAGS = ("optimizer", "momentum", "nesterov", "beta_1", "beta_2", "epsilon", "initial_accumulator", "decay")


@pytest.mark.parametrize(
    ("values", "lacking", "left", "expected"),
    [
        # From before the optimizers a run had only a rate, and before that it averaged plainly.
        *(
            ({"algo": algo, "server_learning_rate": 0.5}, NEW_FLAGS, ["server_learning_rate"], {"learning_rate": 0.5})
            for algo in ("fedavg", "fine_tuning", "buffered")
        ),
        *(
            ({"algo": algo}, (*NEW_FLAGS, "learning_rate"), [], {})
            for algo in ("fedsikd", "random_cluster", "fedcd", "fl_hc", "async_periodic")
        ),
        # AMFL-P had a step of its own.
        *(
            (
                {"algo": "amfl_p", "server_optimizer": choice, "meta_learning_rate": 0.02},
                NEW_FLAGS[1:],
                ["server_optimizer"],
                {"learning_rate": 0.02, "beta_2": 0.999, "epsilon": 1e-7, **own},
            )
            for choice, own in (("sgd", {}), ("momentum", {"momentum": 0.9}), ("adam", {"optimizer": "adam"}))
        ),
    ],
)
def test_a_run_from_before_a_setting_of_the_servers_step_has_the_one_that_it_had(
    store_run, tmp_path, values, lacking, left, expected
):
    store_run(values, {f"server_{name}" for name in lacking})
    stored = json.loads((tmp_path / "run" / "config.json").read_text())["flags"]
    assert [name for name in stored if "server_" in name] == left
    config = build_run_config(read_stored_flags(str(tmp_path / "run")))
    assert config.algorithm.server == ServerStepConfig(**expected)
    assert list_other_settings(stored, config) == []
    if values["algo"] == "fedavg":
        other = build_run_config({**values, "server_momentum": 0.9})
        assert list_other_settings(stored, other) == ["--server_momentum=0.0, not 0.9"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        *(({"algo": f"fed{name}"}, {"optimizer": name, "learning_rate": 0.03}) for name in ("adam", "yogi")),
        ({"algo": "fedavgm"}, {"momentum": 0.9}),
        *(
            (
                {"algo": "amfl_p", "server_optimizer": name, "server_epsilon": 0.01},
                {"optimizer": name, "learning_rate": 0.01, "epsilon": 0.01},
            )
            for name in ("yogi", "adagrad", "rmsprop")
        ),
    ],
)
def test_the_rows_have_the_steps_of_their_names(values, expected):
    server = build_run_config(values).algorithm.server
    known = {"beta_1": 0.9, "beta_2": 0.99, "epsilon": 1e-3, **expected} if values["algo"] != "amfl_p" else expected
    assert known.items() <= dataclasses.asdict(server).items()


def test_the_choices_are_those_of_the_tasks():
    for name in TASK_NAMES:
        assert parse_config([*OWN.split(), f"--task={name}"]).task == name
    assert HUBER in LOSSES
    assert parse_config([*OWN.split(), "--loss=huber", "--huber_delta=0.5"]).huber_delta == 0.5


LATER = ("task", "loss", "huber_delta", "class_weights", "channel_axis", "target_metric")


def test_an_old_run_classified_and_gave_own_models_the_axis_of_the_channel(store_run, tmp_path):
    model = "models.perceptron:build_perceptron"
    resume = store_run({"partition": "iid", "dataset": "npz", "npz": "my.npz", "model": model}, LATER)
    stored = read_stored_flags(str(tmp_path / "run"))
    assert (stored["task"], stored["loss"], stored["channel_axis"]) == ("classification", "auto", True)
    resumed = parse_config([*resume, "--rounds=30"])
    assert (resumed.task, resumed.channel_axis, resumed.target_metric) == ("classification", True, 0)
    assert parse_config([*OWN.split(), f"--model={model}"]).channel_axis is False


def test_an_old_run_of_ours_is_like_a_new_one_and_its_target_may_change(store_run, tmp_path):
    resume = store_run({"partition": "iid", "dataset": "digits"}, LATER)
    stored = read_stored_flags(str(tmp_path / "run"))
    assert not {"task", "channel_axis"} & stored.keys()
    assert (stored["loss"], stored["class_weights"]) == ("auto", "none")
    assert {"task", "huber_delta", "channel_axis"} <= find_idle(build_run_config(stored)).keys()
    assert parse_config([*resume, "--target_metric=0.9"]).target_metric == 0.9


NAMES = ("digits", "mnist", "cifar10")


def list_flags(algo):
    return [field.name for field in (*shared_fields(), *algorithm_fields(algo))]


@pytest.mark.parametrize("algo", [name for name in ALGORITHMS if name != "amfl_p"])
def test_only_flags_of_the_chosen_algorithm_are_meant_by_names_of_other_tools(algo):
    known = list_flags(algo)
    for name in ("lr", "epochs", "local_epochs", "momentum", "batch", "clients", "alpha"):
        hint = suggest_flags(name, known)
        meant = [flag.removeprefix("--") for flag in hint.removeprefix("; did you mean ").rstrip("?").split(" or ")]
        assert meant and set(meant) <= set(known), (algo, name, hint)


def test_a_name_of_other_tools_is_no_flag_of_every_run():
    """It would never be asked for; two are flags of other commands, where those of runs are not known."""
    others = {name for names in OTHER_NAMES.values() for name in names}
    assert others & {field.name for field in shared_fields()} == {"run_dir", "seed"}


@pytest.mark.parametrize(
    ("suggest", "given", "hint"),
    [
        *((lambda text: suggest_value(text, NAMES, "module:OBJECT"), text, "mnist") for text in ("MNIST", "minst")),
        *((lambda text: suggest_value(text, NAMES), text, "cifar10") for text in ("Cifar-10", "cifar 10")),
        (lambda text: suggest_value(text, NAMES, "module:OBJECT"), "a.b.LOAD", "a.b:LOAD"),
        (lambda text: suggest_value(text, NAMES, "module:OBJECT"), "weather", ""),
        (lambda text: suggest_value(text, NAMES), "a.b", ""),
        (lambda text: suggest_value(text, NAMES, "module:OBJECT"), "mine.py", "mine:<name in it>"),
        (lambda text: suggest_value(text, ("iid", "dirichlet")), "non_iid", "dirichlet"),
        (suggest_integer, "1e3", "1000"),
        (suggest_integer, "2.0", "2"),
        *((suggest_integer, text, "") for text in ("2.5", "1e99", "abc", "1_0", "1e5e5", "")),
        (lambda text: suggest_flags(text, list_flags("fedsikd")), "temperatur", "--temperature"),
        (lambda text: suggest_flags(text, list_flags("fedsikd")), "roundz", "--rounds"),
        (lambda text: suggest_flags(text, list_flags("fedavg")), "label", "--label_column"),
        (lambda text: suggest_flags(text, list_flags("fedavg")), "client", "--client_column"),
        (lambda text: suggest_flags(text, list_flags("fedsikd")), "xyzzyx", ""),
    ],
)
def test_what_is_spelled_otherwise_is_recognised_and_nothing_is_made_up(suggest, given, hint):
    assert suggest(given) == (f"; did you mean {hint}?" if hint else "")


@pytest.fixture
def flagfiles(tmp_path, monkeypatch):
    """A current folder with flagfiles, with and without a mark at their start."""
    monkeypatch.chdir(tmp_path)
    for mark in (b"", codecs.BOM_UTF8):
        for i, start in enumerate(("", "# caf\u00e9\n", "// x\r\n", "\n")):
            content = f"{start}--algo=fedavg\n  --npz=/tmp/j\u00fcrgen.npz  \n".encode()
            (tmp_path / f"{i}{'_marked' if mark else ''}.flags").write_bytes(mark + content)
    (tmp_path / "outer.flags").write_bytes(codecs.BOM_UTF8 + b"-flagfile=inner.flags\n--seed=2\n")
    (tmp_path / "inner.flags").write_bytes(codecs.BOM_UTF8 + b"--rounds=3\n")
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.flags").write_text(f"--flagfile={other}.flags\n")
    for name, content in (("utf_16", b"\xff\xfe-\x00"), ("latin", b"--npz=\xfc.npz")):
        (tmp_path / f"{name}.flags").write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *(
            (
                f"--seed=1 --flagfile={i}{mark}.flags --rounds=2",
                "--seed=1 --algo=fedavg --npz=/tmp/j\u00fcrgen.npz --rounds=2",
            )
            for i in range(4)
            for mark in ("", "_marked")
        ),
        ("--flagfile=outer.flags --flagfile=outer.flags", "--rounds=3 --seed=2 --rounds=3 --seed=2"),
        ("--flagfile inner.flags", "--rounds=3"),
        ("-- --flagfile=x", "-- --flagfile=x"),
        ("--flagfile= --seed=1", "--seed=1"),
        ("--flagfile=a.flags", "--flagfile=a.flags: includes itself; expected flagfiles without a circle"),
        *(
            (f"--flagfile={name}.flags", f"cannot read the flagfile {name}.flags: it is not a text file in UTF-8")
            for name in ("utf_16", "latin")
        ),
    ],
)
def test_flagfiles_are_read_in_place_with_or_without_a_mark(flagfiles, given, expected, refuse):
    is_wrong = "flagfile" in expected and "-- " not in expected
    found = refuse(given, expand_flagfiles) if is_wrong else " ".join(expand_flagfiles(given.split()))
    assert found == expected


def test_a_file_is_read_in_utf_8_whatever_the_locale_and_the_program_answers_with_exit_code_2(tmp_path):
    (tmp_path / "a.flags").write_text("# \u00fc\n--algo=nothing\n", encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "launch.train", f"--flagfile={tmp_path / 'a.flags'}"]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr.count(b"\n")) == (2, b"", 1)
    assert ended.stderr.startswith(b"error: --algo=nothing: ")
