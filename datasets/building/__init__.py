"""A simulated building whose sensors each see one room."""
