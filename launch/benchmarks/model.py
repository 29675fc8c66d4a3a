"""The model of a workload, the same for every peer."""

from datasets.federated_data import FederatedData
from launch.benchmarks.workloads import Workload
from models import catalog
from models.model_spec import ModelSpec
from models.task import build_task


def build_model_spec(workload: Workload, data: FederatedData) -> ModelSpec:
    """How to build the workload's model and to preprocess its examples."""
    preprocessing, labels = data.preprocessing, data.labels
    task = build_task(labels.task, data.num_outputs, labels.shape, padding_label=labels.padding, oov_label=labels.oov)
    return catalog.build_model_spec(
        workload.model,
        data.input_shape,
        data.input_dtype,
        data.num_outputs,
        preprocessing.scale,
        preprocessing.offset,
        task=task,
        takes_tokens=data.takes_tokens,
        **workload.model_options,
    )
