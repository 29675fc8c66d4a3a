"""FedBuff: asynchronous training with buffered aggregation."""
