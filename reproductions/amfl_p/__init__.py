"""The report of the AMFL-P paper."""
