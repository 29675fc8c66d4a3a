"""The model of a workload, the same for every peer."""

from datasets.federated_data import FederatedData
from launch.benchmarks.workloads import Workload
from models import catalog
from models.model_spec import ModelSpec


def build_model_spec(workload: Workload, data: FederatedData, quantize: str = "none") -> ModelSpec:
    """How to build the workload's model and to preprocess its examples; `quantize` is as in `--quantize`."""
    preprocessing = data.preprocessing
    return catalog.build_model_spec(
        workload.model,
        data.input_shape,
        data.input_dtype,
        data.num_classes,
        preprocessing.scale,
        preprocessing.offset,
        quantize=quantize,
        **workload.model_options,
    )
