"""Training, from a run's config to its results; and finished runs read back."""
