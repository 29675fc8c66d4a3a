"""FedAsync (Xie et al. 2019): the server mixes in each update as it arrives, stale ones with less weight."""
