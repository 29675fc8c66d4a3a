"""Federated algorithms as TensorFlow Federated computations, and the parts that they share."""
