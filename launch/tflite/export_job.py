"""What the files of one export share, and a model that is exported. Imports no TensorFlow."""

import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from launch.tflite.converter_process import ConverterProcess
from launch.training.finished_run import FinishedRun

if TYPE_CHECKING:
    from models.model_spec import ModelSpec
    from tff_algos.protocol import Weights


class ExportJob(NamedTuple):
    """What all files of one export share.

    Attributes:
      run: the run.
      data: its clients and test set.
      io: of EXPORT_IO, for the integer formats.
      representative_client: the client whose examples set the ranges of int8; "" for all that use a model.
      representative_examples: how many of them at most.
      on_device_training: what of each model can be trained on the phone, of TRAINED_PARTS; NONE writes no such file.
      save_test_set: whether the test set is written, with each file's predictions.
      folder: where the files go.
      converter: what converts the models and first runs the files.
      personal_weights: the weights of the personal models to be exported, by the client's name.
      debug_quantization: whether the layers of each int8 file are measured.
      web_page: whether a page with the files is written.
      page_formats: the formats in that page; empty for its own choice.
    """

    run: FinishedRun
    data: FederatedData
    io: str
    representative_client: str
    representative_examples: int
    on_device_training: str
    save_test_set: bool
    folder: pathlib.Path
    converter: ConverterProcess
    personal_weights: Mapping[str, "Weights"] = {}
    debug_quantization: bool = False
    web_page: bool = False
    page_formats: tuple[str, ...] = ()


class LoadedModel(NamedTuple):
    """A saved model.

    Attributes:
      spec: its specification.
      weights: in the order of `spec.build().weights`.
      parameters: as in `FileRow`.
      multiply_accumulates: as in `FileRow`.
      float32: its float32 file, which may be exported or not; b"" if it cannot be made.
      reason: why it cannot be made.
    """

    spec: "ModelSpec"
    weights: tuple[np.ndarray, ...]
    parameters: int
    multiply_accumulates: int
    float32: bytes
    reason: str = ""
