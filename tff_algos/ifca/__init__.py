"""IFCA and HypCluster: several models, of which each client trains the one that fits it best."""
