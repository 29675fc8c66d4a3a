"""A run from its config to its results."""
