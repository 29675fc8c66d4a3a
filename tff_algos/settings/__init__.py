"""The settings that algorithms share: declarations of fields, and groups of them."""
