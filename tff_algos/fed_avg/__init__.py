"""FedAvg (McMahan et al. 2017), the baseline of every experiment."""
