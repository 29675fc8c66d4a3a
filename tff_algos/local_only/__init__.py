"""Local training alone, a baseline of AMFL-P."""
