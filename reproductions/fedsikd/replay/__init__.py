"""What FedSiKD's published scripts do, replayed once: `python -m reproductions.fedsikd.replay` runs it again."""
