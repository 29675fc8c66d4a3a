"""Ditto: personal models that are pulled to the global one."""
