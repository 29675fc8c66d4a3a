"""What runs the computations: TFF workers, of our own or on other machines."""
