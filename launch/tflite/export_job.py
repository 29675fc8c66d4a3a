"""What an export is asked for, what its files share, and a model that is exported. Imports no TensorFlow."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from launch.tflite.converter_process import ConverterProcess
from launch.training.finished_run import FinishedRun, FinishedRunFlags
from models.model_names import EXPORT_FORMATS, EXPORT_IO, TRAINED_PARTS
from tff_algos.settings.config_fields import setting, texts

if TYPE_CHECKING:
    from models.model_spec import ModelSpec
    from tff_algos.protocol import Weights


NO_TRAINING = "none"  # of `ExportRequest.on_device_training`, beside TRAINED_PARTS
ALL_MODELS = "all"


@dataclasses.dataclass(frozen=True)
class ExportRequest(FinishedRunFlags):
    """What is asked for, flag by flag; see `launch.export`."""

    model: str = setting(
        ALL_MODELS, "Saved models, or clients, for the models that they ended up with; all: all but teachers."
    )
    npz: str = setting("", "Where the file of a run with --dataset=npz is now; empty: where the run found it.")
    formats: tuple[str, ...] = texts((), f"Some of {', '.join(EXPORT_FORMATS)}; empty: all that apply.")
    io: str = setting(EXPORT_IO[0], "Inputs and outputs of int8 and qat_int8.", choices=EXPORT_IO)
    representative_client: str = setting(
        "", "Client whose train split sets the ranges of int8; empty: all that use the model."
    )
    representative_examples: int = setting(
        200, "How many examples set the ranges of int8 at most.", minimum=1, maximum=10**6
    )
    on_device_training: str = setting(
        NO_TRAINING,
        "Also write each model in a form that can be trained on the phone: head trains its last dense layers, full all "
        "of it.",
        choices=(NO_TRAINING, *TRAINED_PARTS),
    )
    save_test_set: bool = setting(False, "Also write the test set, with each file's predictions.")
    debug_quantization: bool = setting(
        False, "Also measure what int8 does to each layer; qat_int8 cannot be looked into."
    )
    web_page: bool = setting(
        False, "Also write a page that runs the files in a phone's browser; needs `make web` once."
    )


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

    def suit(self, spec: "ModelSpec") -> "ExportJob":
        """The same for a model's files: where the model gets the stored numbers as they are, the format says so."""
        if not spec.input_dtype:
            return self
        example_format = dataclasses.replace(self.data.format, preprocessing=spec.format.preprocessing)
        return self._replace(data=dataclasses.replace(self.data, format=example_format))


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
