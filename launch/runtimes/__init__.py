"""What runs the computations."""
