"""Exported files beside the models that they were converted from."""
