"""Partial personalization: some layers are shared, the others stay with the client."""
