"""The page of the Python API: which names it lists. Their signatures and docstrings are read from the code."""

HEAD = """# Python API

This page is made from the code when the site is built. [In Python](python.md) shows how the names are used.
"""

# What a program of one's own calls or extends, from the shortest way to the single pieces.
NAMES = {
    "Runs": (
        "launch.api.fit",
        "launch.api.load_run",
        "launch.api.Run",
        "launch.training.training_run.run_training",
        "launch.settings.run_config.build_run_config",
        "launch.settings.run_config.RunConfig",
    ),
    "Data": (
        "datasets.catalog.load_arrays",
        "datasets.federate.build_federated_data",
        "datasets.dataset.Dataset",
        "datasets.example_format.ExampleFormat",
        "datasets.arrays.make_array_dataset",
        "datasets.client_source.ClientSource",
        "datasets.terms.Terms",
    ),
    "Models": (
        "models.catalog.build_model_spec",
        "models.catalog.ModelOptions",
        "models.stateless_dropout.StatelessDropout",
        "models.tflite_export.convert_model",
    ),
    "Algorithms": (
        "launch.settings.algorithms.Algorithm",
        "tff_algos.settings.config_fields.setting",
        "tff_algos.protocol.FederatedProcess",
        "tff_algos.protocol.RoundOutput",
        "tff_algos.rounds.synchronous.SynchronousProcess",
        "tff_algos.rounds.list_aggregator.ListAggregator",
        "tff_algos.client.local_training.train_locally",
    ),
    "Rounds and evaluation": (
        "launch.runtimes.in_process.run_in_process",
        "launch.training.evaluation.build_evaluator",
        "launch.training.evaluation.StateEvaluation",
    ),
}


def build_page() -> str:
    """The page, as Markdown with the directives that mkdocstrings fills."""
    parts = [HEAD]
    for title, names in NAMES.items():
        parts += [f"## {title}\n", *(f"::: {name}\n" for name in names)]
    return "\n".join(parts)
