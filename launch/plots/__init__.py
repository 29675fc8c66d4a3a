"""Plots of a run."""
