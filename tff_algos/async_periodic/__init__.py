"""Asynchronous FL with periodic aggregation (Hu et al. 2021): scheduled devices, weights by the age of their start."""
