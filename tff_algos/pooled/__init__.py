"""Training on the data of all clients in one place, the bound that federated methods are measured by."""
