"""The page that compares runs, and that of a single run: what it shows, and how it is written."""
