"""The trackers that `--track` and `launch.track` know. Imports nothing."""

MLFLOW, WANDB, TENSORBOARD = "mlflow", "wandb", "tensorboard"
TRACKERS = (MLFLOW, WANDB, TENSORBOARD)
NO_TRACKER = "none"
TRACKER_CHOICES = (NO_TRACKER, *TRACKERS)  # of launch.train
SENT = (MLFLOW, WANDB)  # those that something is sent to; TensorBoard reads what every run writes
