"""Contests of methods on one problem, within one time: the same trials, seeds and limits for each."""
