"""What the process of the converter answers becomes a file or one line."""

import numpy as np
import pytest

from launch.tflite.converter_process import (
    FILE,
    INPUTS,
    MEMORY_BYTES,
    RUN,
    ConverterProcess,
    ProcessLost,
    answer_request,
    run_converter_process,
)
from models.model_names import ModelError


class FakeProcess:
    """Gives one answer, and notes what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def measure_memory(self):
        return 0

    def ask(self, request, timeout_s, memory_bytes):
        self.asked.append((request, memory_bytes))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def job(tmp_path):
    from models.tflite_converter import ConverterJob

    (tmp_path / "saved_model").mkdir()
    return ConverterJob(str(tmp_path), ("serving_default",), "float32")


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            {"refused": "the TFLite converter refuses layer a: b"},
            ModelError,
            "^the TFLite converter refuses layer a: b$",
        ),
        ({"failed": "/x: No space left on device"}, OSError, "^/x: No space left on device$"),
        (ProcessLost("crashed with SIGSEGV"), ModelError, "^the TFLite converter crashed with SIGSEGV$"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, job, answer, error, message):
    with pytest.raises(error, match=message):
        ConverterProcess(FakeProcess(answer), tmp_path).convert(job)


def test_a_crash_of_the_interpreter_is_no_ones_fault_but_the_files(tmp_path):
    process = ConverterProcess(FakeProcess(ProcessLost("crashed with SIGABRT")), tmp_path)
    with pytest.raises(ModelError, match=r"^TFLite's interpreter crashed with SIGABRT$"):
        process.run_file(b"", np.zeros((2, 3), np.float32))
    assert list(tmp_path.iterdir()) == []


def test_what_the_interpreter_cannot_run_is_one_line(tmp_path):
    """It ended the process, whose exit code was all that was said."""
    (tmp_path / FILE).write_bytes(b"no model")
    np.save(tmp_path / INPUTS, np.zeros((2, 3), np.float32))
    answer = answer_request({"task": RUN, "folder": str(tmp_path)})
    assert answer["refused"].startswith("TFLite's interpreter cannot run it: ") and "\n" not in answer["refused"]


def test_the_bound_grows_with_the_model_and_leaves_some_memory_to_others(tmp_path, job, monkeypatch):
    import psutil

    process = FakeProcess({})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 100 * MEMORY_BYTES}))
    ConverterProcess(process, tmp_path).convert(job)
    (tmp_path / "saved_model" / "variables").write_bytes(bytes(1000))
    ConverterProcess(process, tmp_path).convert(job)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1000}))
    ConverterProcess(process, tmp_path).convert(job)
    assert [bound for _, bound in process.asked] == [MEMORY_BYTES, MEMORY_BYTES + 20_000, 800]


@pytest.mark.slow
def test_a_real_crash_and_the_next_job(tmp_path):
    """The converter crashes where it has to quantize a loop; `models.tflite_export` asks for none."""
    import tensorflow as tf

    from models.tflite_converter import REPRESENTATIVE, RESULT, SAVED_MODEL, ConverterJob

    module = tf.Module()
    x = tf.TensorSpec((1, 4, 3), tf.float32, name="x")
    module.serve = tf.function(lambda x: {"logits": tf.scan(lambda h, t: h + t, x)}, input_signature=[x])
    tf.saved_model.save(module, str(tmp_path / SAVED_MODEL), {"serving_default": module.serve})
    np.save(tmp_path / REPRESENTATIVE, np.ones((2, 4, 3), np.float32))
    with run_converter_process(tmp_path, str(tmp_path / "log")) as process:
        with pytest.raises(ModelError, match=r"^the TFLite converter crashed with SIG"):
            process.convert(ConverterJob(str(tmp_path), ("serving_default",), "int8"))
        process.convert(ConverterJob(str(tmp_path), ("serving_default",), "float32"))
    assert (tmp_path / RESULT).stat().st_size
