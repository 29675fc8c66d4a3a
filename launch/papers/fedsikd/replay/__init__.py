"""What FedSiKD's published scripts do, replayed once: `python -m launch.papers.fedsikd.replay` runs it again."""
