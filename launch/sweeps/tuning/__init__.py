"""Choosing settings by validation examples: what is searched, by which sampler, and what is recorded of it."""
