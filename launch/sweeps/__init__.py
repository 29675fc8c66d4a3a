"""Sweeps: which runs are left to do, on which cores, in which processes, and what is shown of them."""
