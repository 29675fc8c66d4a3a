"""The report of the paper on asynchronous FL with periodic aggregation."""
