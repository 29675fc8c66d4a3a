"""The workloads of `launch.benchmark` and the programs that are timed on them."""
