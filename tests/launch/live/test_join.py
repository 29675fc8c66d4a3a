"""The client of one file: its training against local training, by TensorFlow's own interpreter; what it keeps."""

import argparse
import ast
import dataclasses
import datetime
import functools
import hashlib
import pathlib
import sys
import threading
from unittest.mock import ANY

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_formats import make_spec
from traced_training import train

from launch.live import join, messages
from launch.live.join import Client, Examples, Home, Hours, JoinError, Message, Stopped, Trainer
from launch.live.training_file import make_training_file
from launch.training.evaluation import Evaluate
from models.model_spec import ModelSpec
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import initialize_weights

LAYERS = tf.keras.layers
SEED, RATE, SIZE, NUM = (3, 4), 0.05, 8, 21
GOING_ON = threading.Event()


def build_normalized():
    layers = LAYERS.Dense(5), LAYERS.BatchNormalization(momentum=0.8), LAYERS.ReLU(), LAYERS.Dense(3)
    return tf.keras.Sequential([tf.keras.Input((4,)), *layers])


PLAIN = make_spec("logistic_regression", (4,))
NORMALIZED = ModelSpec("normalized", build_normalized, PLAIN.format)


def draw(num=NUM):
    rng = np.random.default_rng(0)
    return rng.normal(size=(num, 4)).astype(np.float32), rng.integers(0, 3, num, dtype=np.int32)


def make(spec, **options):
    """(weights, training, file, trainer) of a model; the tests share those of the same step."""
    training = LocalTrainingConfig(batch_size=SIZE, **options)
    steps = {"epochs": 1, "steps": 0}  # not of the file
    weights, file, trainer = make_step(spec, dataclasses.replace(training, **steps))
    return weights, training, file, trainer


@functools.cache
def make_step(spec, training):
    weights = initialize_weights(spec, seed=1)
    file = make_training_file(spec, weights, training)
    return weights, file, Trainer(file.content, tf.lite.Interpreter)


def ask(weights, training, file, num=NUM, kind="train", **header):
    """A task as a server sends it."""
    per = -(-num // SIZE)
    steps = training.steps or training.epochs * per
    seeds = [tf.random.experimental.stateless_fold_in(SEED, epoch) for epoch in range(-(-steps // per))]
    order = np.stack([tf.random.experimental.stateless_shuffle(tf.range(num), seed).numpy() for seed in seeds])
    told = {"type": kind, "file": file.sha256, "task": "t", "steps": steps, "batch_size": SIZE, "learning_rate": RATE}
    arrays = {name: weights[i] for name, i in zip(file.names, file.positions, strict=True)}
    return Message({**told, **header}, {**arrays, "order": order.astype(np.uint16)})


def examples_of(x, y, num_test=0):
    return Examples(x[num_test:], y[num_test:], x[:num_test], y[:num_test])


MORE_OPTIONS = (
    {"optimizer": "sgd", "epochs": 2},
    {"optimizer": "sgd", "momentum": 0.9, "steps": 7},
    {"optimizer": "sgd", "weight_decay": 0.1, "proximal_weight": 0.5, "epochs": 2},
    {"optimizer": "adam", "epochs": 2},
)


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1, "proximal_weight": 0.5, "epochs": 2},
        {"optimizer": "adam", "steps": 4},
        *(pytest.param(each, marks=pytest.mark.slow) for each in MORE_OPTIONS),
    ],
)
def test_it_trains_as_local_training_does(options):
    """21 examples in batches of 8, the last one of 5; in steps, the last epoch ends early."""
    (x, y), (weights, training, file, trainer) = draw(), make(PLAIN, **options)
    expected = train(PLAIN, training, weights, x, y, SEED, RATE)
    task = ask(weights, training, file)
    trainer.check(task, NUM)
    for _ in range(2):  # nothing is carried into the next round
        trained = trainer.train(task, examples_of(x, y), GOING_ON)
        for delta, other in zip(trained.arrays.values(), expected.weights_delta, strict=True):
            np.testing.assert_allclose(delta, other, rtol=0, atol=1e-5)
    assert trained.header["num_trained"] == expected.num_trained and trained.header["seconds"] > 0
    if not training.proximal_weight:  # which the file's loss is without
        assert trained.header["loss_sum"] == pytest.approx(float(expected.loss_sum), rel=1e-5)


def test_a_batch_that_is_not_full_is_filled_with_other_examples():
    """BatchNorm sees them: as if local training had them in the batch, without their loss."""
    (x, y), (weights, training, file, trainer) = draw(5), make(NORMALIZED, optimizer="sgd", epochs=1)
    task = ask(weights, training, file, 5)
    trained = trainer.train(task, examples_of(x, y), GOING_ON)
    order = task.arrays["order"][0]
    rows = [*order, *order[:3]]
    model = NORMALIZED.build()
    model.set_weights(weights)
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y[rows], model(x[rows], training=True))
        loss = tf.reduce_mean(losses[:5])
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
    ):
        variable.assign_sub(RATE * gradient)
    for delta, variable, start in zip(trained.arrays.values(), model.weights, weights, strict=True):
        np.testing.assert_allclose(delta, variable - start, rtol=0, atol=1e-5)
    assert trained.header["num_trained"] == 5 and trained.header["loss_sum"] == pytest.approx(5 * float(loss), rel=1e-5)


@pytest.mark.slow
def test_with_full_batches_batch_norm_trains_as_local_training_does():
    (x, y), (weights, training, file, trainer) = draw(16), make(NORMALIZED, optimizer="sgd", epochs=2)
    expected = train(NORMALIZED, training, weights, x, y, SEED, RATE)
    trained = trainer.train(ask(weights, training, file, 16), examples_of(x, y), GOING_ON)
    for delta, other in zip(trained.arrays.values(), expected.weights_delta, strict=True):
        np.testing.assert_allclose(delta, other, rtol=0, atol=1e-5)


def test_it_measures_as_the_server_does():
    (x, y), (weights, _, file, trainer) = draw(), make(PLAIN)
    expected = Evaluate(PLAIN, 8)(weights, x, y)
    sums = trainer.measure(dict(zip(file.names, weights, strict=True)), x, y, GOING_ON)
    assert sums["num"] == NUM and sums["correct"] == round(expected.metric * NUM)
    assert sums["loss_sum"] == pytest.approx(float(expected.loss.sum()), rel=1e-5)
    assert isinstance(sums["loss_sum"], float)


def test_a_task_ends_after_the_step_in_which_it_is_withdrawn():
    (x, y), (weights, training, file, trainer) = draw(), make(PLAIN)
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        trainer.train(ask(weights, training, file), examples_of(x, y), stop)


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"steps": 16}, {}),
        ({"steps": -1}, {}),
        ({"steps": True}, {}),
        ({"learning_rate": "fast"}, {}),
        ({"batch_size": 16}, {}),
        ({}, {"order": np.full((5, NUM), NUM, np.uint16)}),
        ({}, {"order": np.zeros((5, NUM - 1), np.uint16)}),
        ({}, {"order": np.zeros(NUM, np.uint16)}),
        ({}, {"order": np.zeros((5, NUM), np.float32)}),
        ({}, {"weight_0": np.zeros((9, 9), np.float32)}),
        ({}, {"weight_0": np.zeros((4, 3), np.int32)}),
        ({}, {"weight_9": np.zeros(3, np.float32)}),
    ],
)
def test_tasks_that_do_not_fit_are_refused(header, arrays):
    weights, training, file, trainer = make(PLAIN)
    task = ask(weights, training, file)
    trainer.check(task, NUM)
    with pytest.raises(JoinError, match="does not fit its training file"):
        trainer.check(Message({**task.header, **header}, {**task.arrays, **arrays}), NUM)


def test_what_is_no_training_file_is_refused():
    with pytest.raises(JoinError, match=r"^the training file cannot be used here"):
        Trainer(b"TFL3", tf.lite.Interpreter)


# --- The work of a client, without a connection ---


@pytest.fixture
def make_client(tmp_path):
    """A function (spec, options) -> (client, task, work) with 21 examples, a fifth of them to test on."""

    def build(spec=PLAIN, kind="train", **options):
        weights, training, file, trainer = make(spec, **options)
        client = Client(argparse.Namespace(token=""), Home(tmp_path), tf.lite.Interpreter)
        client._trainers[file.sha256], client._examples = trainer, examples_of(*draw(), 4)
        task = ask(weights, training, file, NUM - 4, kind, is_last=True)
        return (
            client,
            task,
            join.Work("t", kind == "train", join.digest_task(task, client._examples), threading.Event()),
        )

    return build


def test_the_last_answer_is_given_again_also_after_a_kill(make_client, monkeypatch):
    client, task, work = make_client(epochs=1)
    what, header, arrays = client._do(task, work, client._examples)
    assert what == "trained 17 examples" and header["type"] == "answer"
    monkeypatch.setattr(Trainer, "train", None)  # nobody trains again
    client._home._lock.close()
    for _ in range(2):
        again = client._do(task, work, client._examples)
        assert again[0] == "gave its last answer again" and again[1] == header
        assert all(np.array_equal(again[2][name], arrays[name]) for name in arrays)
        client._home = Home(client._home.folder)  # of the next process


def test_an_answer_is_to_one_task_alone(make_client):
    """Its id may be another; file, weights, order, rate, steps and examples may not."""
    client, task, _ = make_client(epochs=1)
    examples, digest = client._examples, join.digest_task(task, client._examples)
    assert join.digest_task(Message({**task.header, "task": "u", "number": 9}, task.arrays), examples) == digest
    others = [Message({**task.header, name: 7}, task.arrays) for name in ("file", "learning_rate", "steps")]
    others += [Message(task.header, {**task.arrays, name: task.arrays[name] + 1}) for name in ("weight_0", "order")]
    digests = {digest, *(join.digest_task(each, examples) for each in others)}
    digests.add(join.digest_task(task, examples._replace(train_y=examples.train_y + 1)))
    assert len(digests) == 7


def test_it_fine_tunes_and_keeps_what_is_its_own(make_client):
    client, task, work = make_client(kind="fine_tune", optimizer="sgd", steps=40)
    weights = {name: array for name, array in task.arrays.items() if name != "order"}
    _, header, arrays = client._do(task, work, client._examples)
    test = client._examples[2:]
    trainer = client._trainers[task.header["file"]]
    assert header["type"] == "tuned" and not arrays
    assert header["before"] == trainer.measure(weights, *test, GOING_ON)
    with np.load(client._home.folder / "personal.npz") as personal:
        assert personal.keys() == weights.keys()
        assert header["after"] == trainer.measure(dict(personal), *test, GOING_ON)
        assert any((personal[name] != weights[name]).any() for name in weights)


def test_it_measures_when_asked_to(make_client):
    client, task, work = make_client(kind="evaluate")
    _, header, _ = client._do(task, work, client._examples)
    assert header["type"] == "measured" and header["num"] == 4


# --- Messages ---

ARRAYS = st.dictionaries(
    st.text(max_size=5),
    st.builds(
        lambda dtype, shape: np.arange(int(np.prod(shape))).astype(dtype).reshape(shape),
        st.sampled_from(join.DTYPES),
        st.lists(st.integers(0, 3), max_size=3),
    ),
    max_size=3,
)


@settings(max_examples=15)
@given(st.dictionaries(st.text(max_size=5), st.integers()), ARRAYS)
def test_client_and_server_pack_alike(header, arrays):
    header = {**header, "type": "train"}
    header.pop("arrays", None)
    content = join.pack(header, arrays)
    assert content == messages.pack(header, arrays)
    ours, theirs = join.unpack(content), messages.unpack(content)
    assert ours.header == theirs.header == header and ours.arrays.keys() == theirs.arrays.keys()
    for name, array in ours.arrays.items():
        assert array.dtype == theirs.arrays[name].dtype and np.array_equal(array, theirs.arrays[name])


@given(st.binary(max_size=60), st.integers(0, 200), st.booleans())
def test_what_is_no_message_is_refused_by_both(content, place, is_whole):
    """Bytes of any kind, or a message that was cut or changed in one place."""
    if not is_whole:
        whole = bytearray(messages.pack({"type": "train"}, {"a": np.float32([1, 2]), "b": np.uint8([3])}))
        whole[place % len(whole) :] = content[:1] + whole[place % len(whole) + 1 :]
        content = bytes(whole)
    try:
        expected = messages.unpack(content)
    except messages.MessageError:
        with pytest.raises(JoinError):
            join.unpack(content)
        return
    assert join.unpack(content).header == expected.header


def test_constants_are_those_of_the_server():
    names = ("VERSION", "DTYPES", "MOST_HEADER_BYTES")
    assert [getattr(join, name) for name in names] == [getattr(messages, name) for name in names]


# --- What is asked of it ---


@pytest.mark.parametrize(
    ("text", "at", "is_time", "hours"),
    [
        ("22-6", (21, 0), False, 1),
        ("22-6", (22, 0), True, 8),
        ("22-6", (5, 30), True, 0.5),
        ("22-6", (6, 0), False, 16),
        ("8:30-17:15", (8, 30), True, 8.75),
        ("8:30-17:15", (17, 15), False, 15.25),
        ("0-24", None, None, None),
        ("9-9", None, None, None),
        ("9-25", None, None, None),
        ("9 to 10", None, None, None),
    ],
)
def test_hours(text, at, is_time, hours):
    if at is None:
        with pytest.raises(ValueError, match="expected two times of the day"):
            Hours.parse(text)
    else:
        assert Hours.parse(text).plan(datetime.datetime(2024, 5, 1, *at)) == (is_time, hours * 3600)


def test_most_examples_are_the_same_ones_each_time():
    x, y = draw()
    examples = examples_of(x, y, 4)
    limited = examples.limit(6, "key")
    assert len(limited.train_y) == 6 and np.array_equal(limited.train_x, examples.limit(6, "key").train_x)
    rows = [np.flatnonzero((examples.train_x == row).all(axis=1)) for row in limited.train_x]
    assert len({int(row[0]) for row in rows}) == 6
    assert not np.array_equal(limited.train_x, examples.limit(6, "other").train_x)
    assert np.array_equal(limited.test_x, examples.test_x)
    assert len(examples.limit(0, "key").train_y) == len(examples.limit(99, "key").train_y) == 17


def test_two_clients_of_one_folder_have_keys_of_their_own(tmp_path):
    first, second = Home(tmp_path), Home(tmp_path)
    assert first.folder == tmp_path and second.folder == tmp_path / "2" and first.key != second.key
    key, _ = second.key, second._lock.close()
    assert Home(tmp_path).key == key
    assert (tmp_path / "key").stat().st_mode & 0o77 == 0


def test_a_kept_training_file_is_checked(tmp_path):
    home, name = Home(tmp_path), hashlib.sha256(b"file").hexdigest()
    home.write(f"{name}.tflite", b"file")
    assert home.find_file(name) == b"file"
    (tmp_path / f"{name}.tflite").write_bytes(b"other")
    assert not home.find_file(name)


DESCRIPTION = {
    "kind": "arrays",
    "input_shape": [2],
    "input_dtype": "uint8",
    "classes": ["a", "b"],
    "scale": 0.5,
    "offset": 1.0,
}


def test_arrays_are_read_and_a_fifth_is_held_out(tmp_path):
    path = str(tmp_path / "mine.npz")
    x, y = np.arange(20, dtype=np.uint8).reshape(10, 2), np.arange(10) % 2
    np.savez(path, x=x, y=y)
    train_x, train_y, test_x, test_y = join.load_examples(path, DESCRIPTION, "key")
    assert (len(train_y), len(test_y)) == (8, 2) and train_x.dtype == np.float32 and train_y.dtype == np.int32
    both = np.concatenate([train_x, test_x])
    assert sorted(map(tuple, both.tolist())) == sorted(map(tuple, (x * 0.5 + 1).tolist()))
    assert np.array_equal(np.concatenate([train_y, test_y]), (both[:, 0] - 1).astype(int) % 2)
    np.savez(path, x=x, y=np.array(["b", "a"] * 5), test_x=x[:1], test_y=np.array(["b"]))
    _, train_y, test_x, test_y = join.load_examples(path, DESCRIPTION, "key")
    assert train_y.tolist() == [1, 0] * 5 and test_x.tolist() == [[1.0, 1.5]] and test_y.tolist() == [1]


@pytest.mark.parametrize(
    ("arrays", "line"),
    [
        ({"x": np.zeros((3, 2))}, "has x; expected x and y"),
        ({"x": np.zeros((3, 5)), "y": np.zeros(3, int)}, r"float64 of shape \(3, 5\)"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(4, int)}, "and labels of shape"),
        ({"x": np.zeros((3, 2)), "y": np.array([0, 1, 2])}, "has labels that are no class"),
        ({"x": np.zeros((1, 2)), "y": np.array(["c"])}, "has labels that are no class"),
        ({"x": np.zeros((0, 2)), "y": np.zeros(0, int)}, r"of shape \(0, 2\)"),
        ({"x": np.full((1, 2), 0.5), "y": np.zeros(1, int)}, "has numbers that uint8 does not hold"),
        ({"x": np.full((1, 2), 256), "y": np.zeros(1, int)}, "has numbers that uint8 does not hold"),
        (None, "cannot be read as .npz"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, arrays, line):
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays) if arrays else path.write_text("no archive")
    with pytest.raises(JoinError, match=f"^[^\n]*{line}[^\n]*$"):
        join.load_examples(str(path), DESCRIPTION)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["127.0.0.1"], "expected a link that the server prints"),
        (["ftp://host"], "expected a link that the server prints"),
        (["http://host", "--data=nowhere.csv"], "--data=nowhere.csv: no such file"),
        (["http://host", "--most_examples=5"], "--most_examples: expected --data beside it"),
        (
            ["http://host", "--data=nowhere.csv", "--most_examples=-1"],
            "--most_examples: expected 1 or more, or 0 for all",
        ),
        (["http://host:70000/#a_secret"], "error: http://host:70000/: expected a link that the server prints"),
        (["http://host", "--data=/"], "--data=/: no such file (.csv or .npz)"),
        (["http://host", "--hours=9"], "--hours=9: expected two times of the day"),
        (["http://host", "--seat_key=x"], "--seat_key: expected at least 32 hex digits"),
        ([], "the following arguments are required: address; see --help"),
        (["http://host", "--dat=x.csv"], "unrecognized arguments: --dat=x.csv; see --help"),
        (["http://host", "--most_examples=many"], "argument --most_examples: invalid int value: 'many'; see --help"),
    ],
)
def test_wrong_options_are_one_line(arguments, line, capsys):
    assert join.main(arguments) == 2
    out, errors = capsys.readouterr()
    assert errors.startswith("error: ") and line in errors and errors.count("\n") == 1 and not out


@pytest.mark.parametrize(
    ("system", "machine", "line"),
    [
        ("Linux", "x86_64", "pip install ai-edge-litert numpy aiohttp"),
        ("Darwin", "x86_64", "no wheel for this machine"),
        ("Windows", "ARM64", "no wheel for this machine"),
    ],
)
def test_what_is_missing_is_said_with_what_to_install(system, machine, line, monkeypatch, capsys):
    monkeypatch.setattr(join.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(join.platform, "system", lambda: system)
    monkeypatch.setattr(join.platform, "machine", lambda: machine)
    assert join.main(["http://127.0.0.1:1"]) == 2
    assert line in capsys.readouterr().err


def test_a_link_has_a_token_and_makes_a_client_of_its_own():
    first, second, none = (join.parse([f"http://127.0.0.1:8700/{token}"]) for token in ("#a-1_", "#b", ""))
    assert (first.url, first.token, first.address) == ("ws://127.0.0.1:8700/ws", "a-1_", "http://127.0.0.1:8700/")
    assert none.token == "" and len({first.home, second.home, none.home}) == 3
    # Not every shell takes quotes away.
    assert vars(join.parse(["'http://127.0.0.1:8700/#a-1_'"])) == vars(first) | {"tls": ANY}


def test_a_server_that_comes_back_at_another_address_has_the_same_client(tmp_path):
    data = tmp_path / "mine.csv"
    data.write_text("a,b\n")
    before, after = ([f"{base}/#a-1_"] for base in ("http://127.0.0.1:8700", "https://fl.example.org"))
    assert join.parse(before).home == join.parse(after).home
    with_data = [f"--data={data}"]
    assert join.parse(before + with_data).home == join.parse(after + with_data).home != join.parse(before).home
    assert len({join.parse([base]).home for base in ("http://127.0.0.1:8700", "http://127.0.0.1:8701")}) == 2


def test_the_file_stands_alone():
    """It is copied to other machines, with Python 3.10 or later."""
    tree = ast.parse(pathlib.Path(join.__file__).read_text(), feature_version=(3, 10))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = {"numpy", "aiohttp", "ai_edge_litert"}
    assert {name.split(".")[0] for name in names} - allowed <= {*sys.stdlib_module_names}


def test_a_certificate_that_is_none_is_a_line(tmp_path, capsys):
    for path in (tmp_path, tmp_path / "none.pem", pathlib.Path(__file__)):
        assert join.main(["https://host/#a", f"--certificate={path}"]) == 2
        assert capsys.readouterr().err == f"error: --certificate={path}: expected a PEM file of a certificate\n"
