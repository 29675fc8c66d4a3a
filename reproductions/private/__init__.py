"""Private updates: accuracy against epsilon."""
