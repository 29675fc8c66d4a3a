"""Aggregators under attack: accuracy by aggregator and attack."""
