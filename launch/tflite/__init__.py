"""From a run to files for a phone."""
