"""The page of one finished run."""
