"""What `launch.advise` makes of a contest of methods: its verdict, the sentences, the page."""
