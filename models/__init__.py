"""Keras in, weights out: architectures and the model specification."""
