"""Importing this imports what every run needs, which takes longer than many a run: for `warm_process`.

None of it may run a TensorFlow operation when it is imported: that starts threads, which forked processes would lack.
"""

import os

from launch.runtimes.runtime import quiet_tensorflow

with quiet_tensorflow(os.devnull):
    import launch.runtimes.tff_contexts

import matplotlib.backends.backend_agg  # noqa: F401

import launch.pages.plots.run_plots
import launch.runs.tensorboard_log
import launch.training.evaluation
import launch.training.results
import launch.training.training_run  # noqa: F401
