"""What `launch.advise` makes of a contest: from data to methods, and from results to a page that says what to do."""
