"""From a config to clients: the data-set flags arrive, and a smoke run gets random arrays of the same shape."""

import dataclasses
import importlib
import json
import sys

import numpy as np
import pytest
from small_formats import change_format

from datasets.catalog import DatasetOptions, locate
from datasets.download import search_dirs
from datasets.errors import DatasetError
from datasets.example_format import LabelFormat
from launch import evaluate, export, train
from launch.runs.columns import CONFIG_FILE
from launch.runs.data_versions import find_data_versions
from launch.runs.errors import RunFolderError
from launch.runs.run_description import check_same_data, describe_data
from launch.runs.run_folder import RunFolder
from launch.runs.stored_data import read_data_section
from launch.runs.tables import write_json, write_table
from launch.settings.data_flags import choose_options
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config, read_stored_flags
from launch.settings.run_config import RunConfig, build_run_config, flag_values
from launch.settings.trusted_modules import list_modules
from launch.training.announcements import describe_outputs, find_largest_input, find_start
from launch.training.federation import build_run_task, load_federated_data, weigh_classes
from launch.training.finished_run import read_finished_run
from launch.training.training_run import check_task
from models.model_names import ModelError
from tff_algos.settings.config_fields import ConfigError


def load(tmp_path, **values):
    return load_federated_data(
        build_run_config({"algo": "fedavg", "partition": "natural", "client_dir": str(tmp_path), **values})
    )


def test_every_option_of_a_data_set_has_a_flag_with_the_same_default():
    flags = flag_values(build_run_config({"algo": "fedavg", "data_dir": ""}))
    for field in dataclasses.fields(DatasetOptions):
        if field.name not in ("download", "task"):
            assert flags[field.name] == field.default, field.name
    # --task=auto stands for the task that the labels tell.
    assert choose_options(flags) == DatasetOptions()


def test_a_building_of_the_flags_is_simulated(tmp_path):
    values = {"dataset": "building", "building_num_sensors": 3, "building_csv": str(tmp_path / "x.csv")}
    data = load(tmp_path, **values)
    assert [client.name[:10] for client in data.clients] == ["sensor_000", "sensor_001", "sensor_002"]
    assert data.num_dropped > 0 and (tmp_path / "x.csv").exists()
    assert data.digest != load(tmp_path, **values, building_heterogeneity="high").digest


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ({"dataset": "building"}, (8,)),
        ({"dataset": "occupancy"}, (2,)),
        ({"dataset": "occupancy", "occupancy_features": "all"}, (5,)),
        ({"dataset": "har", "har_features": "inertial"}, (128, 9)),
    ],
)
def test_smoke_gets_random_arrays_of_the_shape(tmp_path, values, shape):
    data = load(tmp_path, **values, smoke=True)
    assert data.format.input_shape == shape and len(data.clients) >= 3
    assert np.isfinite(data.read_split(data.clients[0], "train")[0]).all()


def test_settings_of_archetypes_arrive(tmp_path):
    values = {"partition": "hierarchical", "clients_per_archetype": 2, "train_per_client": 50, "test_per_client": 0}
    data = load(tmp_path, **values, bias_min=0.5, bias_max=0.5)
    assert data.archetypes.of_clients[:4] == (0, 0, 1, 1) and data.archetypes.names[3] == "3"
    assert {(client.num_train, client.num_test) for client in data.clients} == {(50, 0)}
    # Half, and 25 / 4 = 6.25 each.
    assert data.label_counts[2].tolist() == [7, 25, 6, 6, 6, 0, 0, 0, 0, 0]
    data = load(tmp_path, partition="hypergeometric", hypergeometric_draws=10)
    assert data.label_counts[0, 6:].sum() == 0 and len(data.clients) == 30


@pytest.mark.parametrize("dataset", ["digits", "mnist"])
@pytest.mark.parametrize("partition", ["hierarchical", "hypergeometric"])
def test_smoke_arrays_have_enough_for_archetypes(tmp_path, dataset, partition):
    data = load(tmp_path, dataset=dataset, partition=partition, smoke=True)
    assert len(data.clients) == len(data.archetypes.names)


OWN_DATA = """
import numpy as np
from datasets.arrays import make_array_dataset
from datasets.example_format import ExampleFormat
from datasets.catalog import Dataset

FORMAT = ExampleFormat((2,), "float32", ("low", "high"))

def load(options):
    y = np.arange(60) % 2
    x = np.stack([y, y], axis=1).astype(np.float32)
    return make_array_dataset("waves", (x, y), (x, y), FORMAT, np.arange(60) % 4)

DATASET = Dataset("waves", loader=load, format=FORMAT, clients="buoys", partition="natural")
"""


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    (tmp_path / "my_waves.py").write_text(OWN_DATA)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("my_waves", None)


def test_a_users_own_data_set_is_read_and_drawn(own_folder):
    config = build_run_config({"algo": "fedavg", "dataset": "my_waves:DATASET", "client_dir": str(own_folder)})
    assert config.partition == "natural"
    data = load_federated_data(config)
    assert data.dataset == "waves" and [client.name for client in data.clients] == [f"client_{n}" for n in range(4)]
    smoke = load_federated_data(dataclasses.replace(config, smoke=True))
    assert [client.name for client in smoke.clients] == ["waves_0", "waves_1", "waves_2"]
    assert smoke.digest != data.digest


@pytest.mark.parametrize("command", ["resume", "evaluate", "export"])
def test_a_run_whose_data_set_is_gone_is_one_line(own_folder, capsys, command):
    run_dir = own_folder / "run"
    run_dir.mkdir()
    flags = flag_values(build_run_config({"algo": "fedavg", "dataset": "my_waves:DATASET"}))
    assert flags["dataset"] == "my_waves:DATASET"
    (run_dir / CONFIG_FILE).write_text(json.dumps({"flags": flags}))
    (own_folder / "my_waves.py").unlink()
    del sys.modules["my_waves"]
    importlib.invalidate_caches()
    main, *arguments = {
        "resume": (train.main, "--resume"),
        "evaluate": (evaluate.main,),
        "export": (export.main,),
    }[command]
    assert main([f"--run_dir={run_dir}", *arguments]) == 2
    expected = "error: --dataset=my_waves:DATASET: no module named my_waves; run from the folder that holds it"
    written = capsys.readouterr().err
    assert written.startswith(expected) and written.count("\n") == 1


@pytest.mark.parametrize("content", ["raise RuntimeError('so\\nit is')", "import sys; sys.exit(0)", "DATASET = 3"])
def test_a_module_that_fails_is_one_line_and_exit_code_2(own_folder, capsys, content):
    (own_folder / "my_waves.py").write_text(content)
    assert train.main(["--algo=fedavg", "--dataset=my_waves:DATASET", f"--run_dir={own_folder / 'run'}"]) == 2
    written = capsys.readouterr().err
    assert written.startswith("error: --dataset=my_waves:DATASET: ") and written.count("\n") == 1
    assert not (own_folder / "run").exists()


def test_what_a_users_own_numbers_show_is_noted(own_folder):
    own = own_folder / "my_waves.py"
    own.write_text(OWN_DATA.replace("np.float32)", "np.float32) * np.float32(1e4)"))
    config = build_run_config({"algo": "fedavg", "dataset": "my_waves:DATASET", "client_dir": str(own_folder)})
    (note,) = load_federated_data(config).notes
    assert note.startswith("feature 0 (counted from 0) has a mean of 5e+03") and note.endswith(
        "--standardize=federated"
    )
    assert load_federated_data(dataclasses.replace(config, smoke=True)).notes == ()


def test_a_file_is_read_by_its_flags(tmp_path):
    x = np.arange(60 * 2 * 5 * 6).reshape(60, 2, 5, 6) % 256
    np.savez(tmp_path / "mine.npz", x=x.astype(np.uint8), y=np.arange(60) % 3, client=np.arange(60) // 6)
    values = {"dataset": "npz", "npz": str(tmp_path / "mine.npz")}
    data = load(tmp_path, **values)
    assert (
        data.format.input_shape == (5, 6, 2) and data.reading == "images of 5 x 6 pixels, 2 channels, scaled by 1/255"
    )
    assert len(data.clients) == 10 and len(data.notes) == 1
    data = load(tmp_path, **values, layout="features", scale="1/16")
    assert data.format.input_shape == (60, 1) and data.reading == "60 features, scaled by 1/16" and data.notes == ()


def test_our_own_data_get_no_notes(tmp_path):
    data = load_federated_data(build_run_config({"algo": "fedavg", "client_dir": str(tmp_path)}))
    assert data.notes == () and data.reading == "images of 8 x 8 pixels, 1 channel, scaled by 1/16"
    data = load(tmp_path, dataset="building", building_num_sensors=3)
    assert data.notes == () and data.reading == "8 features, as they are"


@pytest.mark.parametrize("dataset", ["mnist", "cifar10", "har", "occupancy"])
def test_a_data_folder_that_does_not_exist_is_refused_and_not_made(tmp_path, monkeypatch, dataset):
    monkeypatch.setenv("FL_DATA_DIR", str(tmp_path / "from_variable"))
    for values in ({}, {"data_dir": str(tmp_path / "gone")}):
        with pytest.raises(DatasetError, match=r"^data_dir=.*(gone|from_variable): no such folder; make it, or name"):
            load_federated_data(build_run_config({"algo": "fedavg", "dataset": dataset, **values}))
    assert not list(tmp_path.iterdir())


def test_an_empty_data_folder_is_none(tmp_path, monkeypatch):
    """`FL_DATA_DIR=` must not mean the current folder."""
    monkeypatch.setenv("FL_DATA_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mnist.npz").write_bytes(b"")
    assert search_dirs(RunConfig(algo="fedavg").data_dir, "mnist") == search_dirs(None, "mnist")
    assert not locate("mnist", "").found


def test_what_names_the_data_whatever_the_seed_is_that_of_a_users_file(tmp_path):
    rows = [f"c{i % 3},{i},{-i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["client,a,b,label", *rows, ""]))
    np.savez(tmp_path / "mine.npz", x=np.arange(120, dtype=np.float32).reshape(60, 2), y=np.arange(60) % 2)
    table, npz = {"data": str(tmp_path / "table.csv")}, {"dataset": "npz", "npz": str(tmp_path / "mine.npz")}

    def identify(seed, **flags):
        values = {"algo": "fedavg", "partition": "iid", "client_dir": str(tmp_path / "clients"), "num_clients": 2}
        return load_federated_data(build_run_config({**values, **flags, "seed": seed}))

    for flags, kind in ((table, "source_digest"), (npz, "source_digest"), ({}, "arrays_digest")):
        one, other = (identify(seed, **flags) for seed in (0, 1))
        assert list(one.source_digests) == list(other.source_digests) == [kind]
        assert (one.source_digests == other.source_digests) is bool(flags) and one.digest != other.digest


REGRESSION = LabelFormat("regression", (), 1, (10.0,), (5.0,))
FORMATS = {
    "classification": LabelFormat(),
    "multi_label": LabelFormat("multi_label", (3,), 3),
    "regression": REGRESSION,
    "next_token": LabelFormat("next_token", (4,), 30, padding=-1, oov=1),
}


@pytest.fixture
def make_data(make_federation):
    """(task) -> a federation whose labels are said to be of it."""
    federation = make_federation([4, 6])

    def make(task):
        names = federation.format.class_names if task in ("classification", "multi_label") else ()
        return change_format(federation, labels=FORMATS[task], class_names=names)

    return make


def make_config(**flags):
    return build_run_config({"algo": "fedavg", "dataset": "npz", "npz": "my.npz", "partition": "iid", **flags})


SAID = ("3 classes", "3 labels, of which each has any", "a number to tell", "a vocabulary of 30 tokens")


@pytest.mark.parametrize(("name", "said"), zip(FORMATS, SAID, strict=True))
def test_the_task_of_a_run_is_that_of_its_data(make_data, name, said):
    data = make_data(name)
    task, labels = build_run_task(make_config(), data.format), data.format.labels
    assert (task.kind.name, task.num_outputs, task.label_shape) == (name, data.format.num_outputs, labels.shape)
    assert (task.label_offset, task.label_scale) == (labels.offset, labels.scale)
    assert (task.padding_label, task.oov_label) == (labels.padding, labels.oov)
    assert describe_outputs(data) == said


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        ("regression", {"target_accuracy": 0.5}, "expected 0, since the task is regression; give --target_metric"),
        (
            "multi_label",
            {"loss": "absolute"},
            "loss=absolute: expected auto or cross_entropy for the task multi-label",
        ),
        ("classification", {"loss": "squared"}, "loss=squared: expected auto or cross_entropy"),
    ],
)
def test_what_the_task_does_not_have_is_one_line(make_data, task, flags, message):
    with pytest.raises(ConfigError) as error:
        check_task(make_config(**flags), make_data(task))
    assert message in str(error.value)


def test_what_the_task_has_is_taken_and_its_loss_is_that_of_the_flags(make_data):
    check_task(make_config(target_accuracy=0.5), make_data("classification"))
    regression = make_data("regression")
    check_task(make_config(target_metric=50.0, loss="absolute"), regression)
    assert build_run_task(make_config(), regression.format).loss == "squared"
    task = build_run_task(make_config(loss="huber", huber_delta=0.25), regression.format)
    assert (task.loss, task.huber_delta) == ("huber", 0.25)


def test_tokens_are_no_large_numbers(make_data):
    assert find_largest_input(change_format(make_data("next_token"), input_dtype="uint8", takes_tokens=True)) == 0


LOSS = """
def twice(labels, outputs):
    import tensorflow as tf
    return 2 * tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
"""


def make_weighed_config(**flags):
    return build_run_config({"algo": "fedavg", **flags})


@pytest.fixture
def data(make_federation):
    """Two clients with 6, 2 and 0 examples of the three classes a, b and c."""
    federation = change_format(make_federation([3, 5]), class_names=("a", "b", "c"))
    return dataclasses.replace(federation, label_counts=np.array([[3, 0, 0], [3, 2, 0]]))


def test_balanced_weights_are_said_and_kept(data, tmp_path):
    config = make_weighed_config(class_weights="balanced")
    weighed = weigh_classes(config, data)
    # 8 / (2 * 6) and 8 / (2 * 2); c has no example.
    assert weighed.class_weights == pytest.approx((2 / 3, 2.0, 1.0))
    assert list(find_start(config, RunFolder(tmp_path, is_new=True), weighed))[-2:] == [
        ("weights", "of the classes' losses in training (balanced): a: 0.6667, b: 2, c: 1; tests have none"),
        ("note", "no client trains on an example of c: such a class weighs 1"),
    ]
    section = json.loads(json.dumps(describe_data(weighed)))
    assert section["class_weights"] == pytest.approx([2 / 3, 2, 1]) and "class_weights_digest" not in section
    read_data_section(section, "config.json")
    task = build_run_task(config, weighed.format, weighed.class_weights)
    assert task.class_weights == weighed.class_weights and task.own_loss is None


def test_without_the_flag_nothing_changes(data):
    assert weigh_classes(make_weighed_config(), data) is data
    assert "class_weights" not in describe_data(data)


def test_a_changed_file_is_other_data(data, tmp_path):
    path = tmp_path / "w.json"
    path.write_text('{"a": 1, "b": 2, "c": 3}')
    config = make_weighed_config(class_weights=str(path))
    weighed = weigh_classes(config, data)
    folder = RunFolder(tmp_path, is_new=False)
    write_json(folder.config, {"flags": flag_values(config), "data": describe_data(weighed)})
    path.write_text('{"c": 3.0, "a": 1.0, "b": 2.0}')
    # The same in other words.
    check_same_data(folder, weigh_classes(config, data))
    path.write_text('{"a": 1, "b": 2, "c": 4}')
    with pytest.raises(RunFolderError, match=r"changed since it began \(class_weights_digest, class_weights\)"):
        check_same_data(folder, weigh_classes(config, data))
    folder.close()
    flags = flag_values(config)
    sums = [{"digest": "0" * 64, "class_weights_digest": letter * 64} for letter in "aab"]
    assert find_data_versions([(flags, each) for each in sums]) == [
        *["data 00000000, weights aaaaaaaa"] * 2,
        "data 00000000, weights bbbbbbbb",
    ]


@pytest.mark.parametrize("change", [lambda weights: [*weights, 1.0], lambda weights: [-1.0, 1, 1], lambda weights: "x"])
def test_damaged_weights_are_one_line(data, change):
    section = describe_data(weigh_classes(make_weighed_config(class_weights="balanced"), data))
    section["class_weights"] = change(section["class_weights"])
    with pytest.raises(RunFolderError, match=r"damaged, its data has (another number of )?class_weights"):
        read_data_section(section, "config.json")


def test_what_cannot_be_weighed_is_one_line(data):
    balanced = make_weighed_config(class_weights="balanced")
    with pytest.raises(ConfigError, match="expected a file of weights: the labels of 2 clients are too many"):
        weigh_classes(balanced, dataclasses.replace(data, label_counts=np.zeros((2, 0), np.int64)))
    numbers = change_format(data, labels=LabelFormat("regression", (), 1, (10.0,), (5.0,)), class_names=())
    for flag in ("balanced", "w.json"):
        with pytest.raises(ConfigError, match="expected none, since the labels of the task regression are no classes"):
            weigh_classes(make_weighed_config(class_weights=flag), numbers)
    with pytest.raises(DatasetError, match=r"class_weights=w\.csv: No such file"):
        weigh_classes(make_weighed_config(class_weights="w.csv"), data)
    with pytest.raises(FlagError, match="--class_weights=balanced: expected none or a file with privacy"):
        parse_config(["--algo=fedavg", "--class_weights=balanced", "--dp_epsilon=2", "--client_weighting=equal"])


@pytest.fixture
def own_loss(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "kept_loss.py").write_text(LOSS)
    monkeypatch.chdir(tmp_path / "modules")
    monkeypatch.syspath_prepend("")
    return "kept_loss:twice"


def test_an_own_loss_is_for_every_data_set(data, own_loss):
    config = parse_config(["--algo=fedavg", f"--loss={own_loss}"])
    check_task(config, data)
    assert list_modules(flag_values(config)) == ["kept_loss"]
    task = build_run_task(config, data.format, (1.0, 1.0, 2.0))
    losses = task.compute_training_losses(np.int32([0, 2]), np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(losses, [2 * np.log(3), 4 * np.log(3)], rtol=1e-6)
    np.testing.assert_allclose(task.compute_losses(np.int32([0]), np.zeros((1, 3), np.float32)), [np.log(3)], rtol=1e-6)
    with pytest.raises(ConfigError, match="loss=huber: expected auto or cross_entropy for the task classif"):
        check_task(make_weighed_config(loss="huber"), data)
    with pytest.raises(ModelError, match="loss=kept_loss:none: expected none in kept_loss"):
        build_run_task(make_weighed_config(loss="kept_loss:none"), data.format)


def test_a_finished_run_needs_its_loss_only_to_train_further(data, own_loss, tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    config = make_weighed_config(loss=own_loss, class_weights="balanced", model="logistic_regression")
    section = describe_data(weigh_classes(config, data))
    write_json(run_dir / "config.json", {"flags": flag_values(config), "data": section})
    write_json(run_dir / "summary.json", {"rounds": 1, "fedavg": {}})
    write_table(run_dir / "clients.csv", ["client", "model"], [["client_0", "global"]])
    with pytest.raises(FlagError, match="the run needs your module kept_loss, whose code would run"):
        # As --resume reads it.
        read_stored_flags(str(run_dir))
    run = read_finished_run(str(run_dir))
    assert run.build_spec().task.own_loss is None
    with pytest.raises(FlagError, match="the run needs your module kept_loss, whose code would run"):
        run.build_spec(to_train=True)
    task = read_finished_run(str(run_dir), trusted={"kept_loss"}).build_spec(to_train=True).task
    assert task.own_loss is not None and task.class_weights == pytest.approx((2 / 3, 2.0, 1.0))
    write_json(
        run_dir / "config.json", {"flags": flag_values(config), "data": section, "own_modules": {"kept_loss": ""}}
    )
    with pytest.raises(
        RunFolderError, match=r"your code changed since the run \(kept_loss\), by whose loss its models"
    ):
        read_finished_run(str(run_dir), trusted={"kept_loss"}).build_spec(to_train=True)


def test_new_clients_that_are_not_tested_are_left_out_and_the_others_stay_as_they_are(tmp_path):
    arguments = ["--algo=ditto", "--num_clients=6", "--new_clients=2", "--partition=iid", "--variant=permuted"]
    arguments += ["--variant_groups=2", f"--client_dir={tmp_path}"]
    tested, left_out = (
        load_federated_data(parse_config([*arguments, *further])) for further in ((), ("--test_new_clients=false",))
    )
    assert len(tested.new_clients) == 2 and not left_out.new_clients
    assert left_out.clients == tested.clients and left_out.digest == tested.digest
    assert len(left_out.archetypes.of_clients) == len(left_out.profiles.examples_per_s) == 4
    assert left_out.profiles.examples_per_s.tolist() == tested.profiles.examples_per_s[:4].tolist()
    assert left_out.archetypes.of_clients == tested.archetypes.of_clients[:4]
    with pytest.raises(FlagError, match="--test_new_clients: does nothing with --new_clients=0"):
        parse_config(["--algo=ditto", "--test_new_clients=false"])


def test_drawn_new_clients_are_the_same_with_every_seed_and_have_their_devices_and_groups(tmp_path):
    """Of six clients 3 and 5 are drawn; 0 to 2 see one group's pixels, 3 to 5 the other's, and a file has devices."""
    head = "client,examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s"
    (tmp_path / "devices.csv").write_text("\n".join([head, *(f"{i},{100 + i},1e6,1e6" for i in range(6))]))
    arguments = ["--algo=ditto", "--num_clients=6", "--new_clients=2", "--partition=iid", "--variant=permuted"]
    arguments += ["--variant_groups=2", f"--client_dir={tmp_path}", "--draw_new_clients"]
    arguments += [f"--device_profiles={tmp_path / 'devices.csv'}"]
    for seed in (0, 1):
        data = load_federated_data(parse_config([*arguments, f"--seed={seed}"]))
        assert [client.name for client in data.new_clients] == ["client_3", "client_5"]
        assert [client.name for client in data.clients] == ["client_0", "client_1", "client_2", "client_4"]
        assert data.profiles.examples_per_s.tolist() == [100, 101, 102, 104, 103, 105]
    left_out = load_federated_data(parse_config([*arguments, "--seed=1", "--test_new_clients=false"]))
    assert left_out.clients == data.clients and not left_out.new_clients
    assert left_out.profiles.examples_per_s.tolist() == [100, 101, 102, 104]
    assert left_out.archetypes.of_clients == data.archetypes.of_clients[:4]
    with pytest.raises(FlagError, match="--draw_new_clients: does nothing with --new_clients=0"):
        parse_config(["--algo=ditto", "--draw_new_clients"])
