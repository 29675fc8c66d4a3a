"""Protocols that others published: our algorithms beside the accuracies that they print."""
