"""The report of the FedCD paper."""
