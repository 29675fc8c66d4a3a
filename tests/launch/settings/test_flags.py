"""The command line: every mistake is one line, quickly and without TensorFlow."""

import codecs
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


NEW_FLAGS = ("optimizer", "momentum", "nesterov", "beta_1", "beta_2", "epsilon", "initial_accumulator", "decay")


@pytest.fixture
def read_old_run(store_run, tmp_path):
    """(flags, names) -> the flags in a run's `config.json` that lacks these, and what is read of them."""

    def read(values, lacking):
        store_run(values, lacking)
        stored = json.loads((tmp_path / "run" / "config.json").read_text())["flags"]
        return stored, read_stored_flags(str(tmp_path / "run"))

    return read


@pytest.mark.parametrize("algo", ["fedavg", "fine_tuning", "buffered"])
def test_a_run_from_before_the_optimizers_had_only_a_rate(read_old_run, algo):
    values = {"algo": algo, "server_learning_rate": 0.5}
    stored, read = read_old_run(values, {f"server_{name}" for name in NEW_FLAGS})
    assert [name for name in stored if "server_" in name] == ["server_learning_rate"]
    config = build_run_config(read)
    assert config.algorithm.server == ServerStepConfig(learning_rate=0.5)
    assert config.algorithm.server.is_plain
    assert config == build_run_config(values)
    assert list_other_settings(stored, config) == []
    assert list_other_settings(stored, build_run_config({**values, "server_momentum": 0.9})) == [
        "--server_momentum=0.0, not 0.9"
    ]


@pytest.mark.parametrize("algo", ["fedsikd", "random_cluster", "fedcd", "fl_hc", "async_periodic"])
def test_a_run_from_before_the_step_averaged_plainly(read_old_run, algo):
    stored, read = read_old_run({"algo": algo}, {f"server_{name}" for name in (*NEW_FLAGS, "learning_rate")})
    assert not any("server_" in name for name in stored)
    config = build_run_config(read)
    assert config.algorithm.server == ServerStepConfig()
    assert list_other_settings(stored, config) == []


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("sgd", ServerStepConfig(learning_rate=0.02, beta_2=0.999, epsilon=1e-7)),
        ("momentum", ServerStepConfig(learning_rate=0.02, momentum=0.9, beta_2=0.999, epsilon=1e-7)),
        ("adam", ServerStepConfig("adam", learning_rate=0.02, beta_2=0.999, epsilon=1e-7)),
    ],
)
def test_an_old_run_of_amfl_p_has_the_step_that_it_had(read_old_run, choice, expected):
    values = {"algo": "amfl_p", "server_optimizer": choice, "meta_learning_rate": 0.02}
    lacking = {f"server_{name}" for name in NEW_FLAGS} - {"server_optimizer"}
    stored, read = read_old_run(values, lacking)
    assert [name for name in stored if "server_" in name] == ["server_optimizer"]
    config = build_run_config(read)
    assert config.algorithm.server == expected
    assert list_other_settings(stored, config) == []


@pytest.mark.parametrize("name", ["yogi", "adagrad", "rmsprop"])
def test_amfl_p_has_the_other_optimizers(name):
    server = build_run_config({"algo": "amfl_p", "server_optimizer": name, "server_epsilon": 0.01}).algorithm.server
    assert (server.optimizer, server.learning_rate, server.epsilon) == (name, 0.01, 0.01)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("server_beta_1=0.5", "does nothing with --server_optimizer=sgd"),
        ("server_epsilon=0.5", "give --server_optimizer=adam or yogi or adagrad or rmsprop"),
        ("server_nesterov", "does nothing with --server_momentum=0.0; leave it out, or give"),
        ("server_optimizer=adam server_momentum=0.5", "give --server_optimizer=sgd or rmsprop"),
        ("server_optimizer=rmsprop server_momentum=0.5 server_nesterov", "give --server_optimizer=sgd"),
        ("server_optimizer=adam server_initial_accumulator=1", "give --server_optimizer=adagrad"),
        ("server_optimizer=adam server_decay=0.5", "give --server_optimizer=rmsprop"),
        ("server_momentum=1", "a number at least 0 and below 1"),
        ("server_optimizer=adam server_epsilon=0", "a number above 0"),
        ("server_optimizer=lamb", "one of sgd, adam, yogi, adagrad, rmsprop"),
    ],
)
def test_what_does_nothing_or_cannot_be_is_refused(refuse, flags, reason):
    assert reason in refuse(["--algo=fedavg", *(f"--fedavg_{flag}" for flag in flags.split())])


def test_the_rows_have_the_steps_of_their_names():
    servers = {algo: build_run_config({"algo": algo}).algorithm.server for algo in ("fedadam", "fedyogi", "fedavgm")}
    assert [servers[algo].optimizer for algo in servers] == ["adam", "yogi", "sgd"]
    assert servers["fedavgm"].momentum == 0.9
    for algo in ("fedadam", "fedyogi"):
        assert (servers[algo].beta_1, servers[algo].beta_2, servers[algo].epsilon) == (0.9, 0.99, 1e-3)


OWN = ["--algo=fedavg", "--dataset=npz", "--npz=my.npz", "--partition=iid"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo=fedavg", "--dataset=digits", "--task=binary"], "--task: does nothing with --dataset=digits"),
        (
            ["--algo=fedavg", "--loss=hubert"],
            "--loss=hubert: expected one of auto, cross_entropy, squared, absolute, huber, "
            "or your own as module:function",
        ),
        ([*OWN, "--task=ranking"], "--task=ranking: expected one of auto, classification, binary"),
        ([*OWN, "--huber_delta=2"], "--huber_delta: does nothing with --loss=auto; leave it out, or give --loss=huber"),
        ([*OWN, "--loss=huber", "--huber_delta=0"], "--huber_delta=0: expected a number above 0"),
        ([*OWN, "--channel_axis"], "--channel_axis: does nothing with --model=auto"),
        ([*OWN, "--target_metric=-1"], "--target_metric=-1: expected a number at least 0"),
        ([*OWN, "--target_metric=1", "--target_accuracy=0.5"], "either --target_accuracy or --target_metric, not both"),
        (
            [*OWN, "--target_metric=9", "--dp_epsilon=2", "--client_weighting=equal"],
            "0 with private updates: a result without noise",
        ),
    ],
)
def test_a_wrong_request_is_one_line(refuse, arguments, message):
    assert message in refuse(arguments)


def test_the_choices_are_those_of_the_tasks():
    for name in TASK_NAMES:
        assert parse_config([*OWN, f"--task={name}"]).task == name
    assert HUBER in LOSSES
    assert parse_config([*OWN, "--loss=huber", "--huber_delta=0.5"]).huber_delta == 0.5


LATER = ("task", "loss", "huber_delta", "class_weights", "channel_axis", "target_metric")


def test_an_old_run_classified_and_gave_own_models_the_axis_of_the_channel(store_run, tmp_path):
    own = {"dataset": "npz", "npz": "my.npz", "model": "models.perceptron:build_perceptron"}
    resume = store_run({"partition": "iid", **own}, LATER)
    stored = read_stored_flags(str(tmp_path / "run"))
    assert (stored["task"], stored["loss"], stored["channel_axis"]) == ("classification", "auto", True)
    resumed = parse_config([*resume, "--rounds=30"])
    assert (resumed.task, resumed.channel_axis, resumed.target_metric) == ("classification", True, 0)
    assert parse_config([*OWN, "--model=models.perceptron:build_perceptron"]).channel_axis is False


def test_an_old_run_of_ours_is_like_a_new_one_and_its_target_may_change(store_run, tmp_path):
    resume = store_run({"partition": "iid", "dataset": "digits"}, LATER)
    stored = read_stored_flags(str(tmp_path / "run"))
    assert not {"task", "channel_axis"} & stored.keys()
    assert (stored["loss"], stored["class_weights"]) == ("auto", "none")
    assert {"task", "huber_delta", "channel_axis"} <= find_idle(build_run_config(stored)).keys()
    assert parse_config([*resume, "--target_metric=0.9"]).target_metric == 0.9


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


def test_what_is_spelled_alike_comes_from_the_chosen_algorithm_first():
    known = list_flags("fedsikd")
    assert suggest_flags("temperatur", known) == "; did you mean --temperature?"
    assert suggest_flags("roundz", known).startswith("; did you mean --rounds")
    assert suggest_flags("xyzzyx", known) == ""


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("MNIST", "mnist"),
        ("Cifar-10", "cifar10"),
        ("cifar 10", "cifar10"),
        ("minst", "mnist"),
        ("a.b.LOAD", "a.b:LOAD"),
    ],
)
def test_a_value_that_is_spelled_otherwise_is_recognised(value, hint):
    assert suggest_value(value, ("digits", "mnist", "cifar10"), "module:OBJECT") == f"; did you mean {hint}?"


def test_nothing_is_made_up():
    assert suggest_value("weather", ("digits", "mnist"), "module:OBJECT") == ""
    assert suggest_value("a.b", ("digits",)) == ""
    assert [suggest_integer(text) for text in ("1e3", "2.0", "2.5", "1e99", "abc", "1_0", "1e5e5", "")] == [
        "; did you mean 1000?",
        "; did you mean 2?",
        *[""] * 6,
    ]


@pytest.fixture
def write(tmp_path):
    def write_file(name, text, mark=b""):
        (tmp_path / name).write_bytes(mark + text.encode())
        return f"--flagfile={tmp_path / name}"

    return write_file


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("start", ["", "# caf\u00e9\n", "// x\r\n", "\n"])
def test_a_mark_at_the_start_is_no_part_of_the_first_flag(write, mark, start):
    flagfile = write("a.flags", f"{start}--algo=fedavg\n  --npz=/tmp/j\u00fcrgen.npz  \n", mark)
    assert expand_flagfiles(["--seed=1", flagfile, "--rounds=2"]) == [
        *("--seed=1", "--algo=fedavg", "--npz=/tmp/j\u00fcrgen.npz", "--rounds=2"),
    ]


def test_a_file_reads_others(write, tmp_path):
    write("inner.flags", "--rounds=3\n", codecs.BOM_UTF8)
    outer = write("outer.flags", f"-flagfile={tmp_path / 'inner.flags'}\n--seed=2\n", codecs.BOM_UTF8)
    assert expand_flagfiles([outer, outer]) == ["--rounds=3", "--seed=2"] * 2
    assert expand_flagfiles(["--flagfile", str(tmp_path / "inner.flags")]) == ["--rounds=3"]


def test_what_stands_behind_two_dashes_stays(write):
    assert expand_flagfiles(["--", "--flagfile=x"]) == ["--", "--flagfile=x"]
    assert expand_flagfiles(["--flagfile=", "--seed=1"]) == ["--seed=1"]


def test_a_circle_is_one_line(write, refuse, tmp_path):
    write("b.flags", f"--flagfile={tmp_path / 'a.flags'}\n")
    assert "a.flags: includes itself" in refuse([write("a.flags", f"--flagfile={tmp_path / 'b.flags'}\n")])


@pytest.mark.parametrize("content", [b"\xff\xfe-\x00", b"--npz=\xfc.npz"])
def test_another_encoding_is_one_line(write, refuse, content):
    assert "a.flags: it is not a text file in UTF-8" in refuse([write("a.flags", "", content)])


def test_a_file_is_read_in_utf_8_whatever_the_locale(write):
    flagfile = write("a.flags", "# \u00fc\n--algo=nothing\n")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "launch.train", flagfile]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60)
    assert ended.returncode == 2 and ended.stderr.startswith(b"error: --algo=nothing: ")
