"""Simulated devices: clock, bytes, arrivals, schedules. No TensorFlow."""
