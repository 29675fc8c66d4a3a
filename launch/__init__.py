"""What a person runs: train, evaluate, sweep, report, benchmark, doctor."""
