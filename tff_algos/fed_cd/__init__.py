"""FedCD (Kopparapu et al. 2020): global models are cloned and deleted until each archetype has its own."""
