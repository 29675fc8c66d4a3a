"""The report of the FedSiKD paper."""
