"""What rounds are made of: aggregation over clients, and the frames that several algorithms fill."""
