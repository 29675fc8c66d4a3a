"""APFL: each client mixes a model of its own with the global one."""
