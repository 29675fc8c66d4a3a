"""FL+HC (Briggs et al. 2020): hierarchical clustering of the clients' updates, then FedAvg in each cluster."""
