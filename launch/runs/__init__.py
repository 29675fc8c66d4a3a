"""The run folder and what is kept in it, written and read."""
