"""The oracle: FedAvg inside the groups of clients that the data know; what clustering could reach at best."""
