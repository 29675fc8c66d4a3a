"""The identity of files, see `files.digests`."""

from files.digests import compute_source_digest

__all__ = ["compute_source_digest"]
