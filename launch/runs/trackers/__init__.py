"""Sends run folders, finished or growing, to MLflow and W&B."""
