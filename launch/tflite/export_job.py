"""What an export is asked for, what its files share, and a model that is exported. Imports no TensorFlow."""

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


NO_TRAINING = "none"  # of `ExportRequest.on_device_training`, beside TRAINED_PARTS


class ExportRequest(NamedTuple):
    """What is asked for, flag by flag; see `launch.export`. `formats` is empty for all that apply."""

    run_dir: str
    data_dir: str
    npz: str
    trust_module: str
    model: str
    round: str
    formats: tuple[str, ...]
    io: str
    representative_client: str
    representative_examples: int
    on_device_training: str
    save_test_set: bool
    debug_quantization: bool
    web_page: bool


class ExportJob(NamedTuple):
    """What all files of one export share.

    Attributes:
      run: the run.
      data: its clients and test set.
      request: what is asked for.
      folder: where the files go.
      converter: what converts the models and first runs the files.
      personal_weights: the weights of the personal models to be exported, by the client's name.
    """

    run: FinishedRun
    data: FederatedData
    request: ExportRequest
    folder: pathlib.Path
    converter: ConverterProcess
    personal_weights: Mapping[str, "Weights"]


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
