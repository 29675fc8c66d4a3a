"""What papers print and claim beside our runs: a folder a paper, and the engine that they share."""
