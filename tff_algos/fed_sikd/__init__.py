"""FedSiKD: clients clustered by statistics of their data, a teacher distilled into students in each cluster."""
