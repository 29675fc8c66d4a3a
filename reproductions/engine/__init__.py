"""What all papers share: collecting runs, judging claims, writing tables. Knows no paper."""
