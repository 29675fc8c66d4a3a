"""Live rounds: clients that answer over the network, and the record from which they are simulated again."""
