"""Runs beside what papers print and claim."""
