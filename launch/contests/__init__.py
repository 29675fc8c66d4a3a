"""Contests: methods tried on one problem within a time. Knows no paper, no command, and no sentence on its results."""
