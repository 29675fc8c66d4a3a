"""What data are like before anything is trained on them, in numbers."""
