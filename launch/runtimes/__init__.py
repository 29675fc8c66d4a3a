"""What runs the computations: a row of the registry for each runtime, chosen by `--runtime`."""
