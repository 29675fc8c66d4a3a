"""FedNova: a mean that unequal numbers of local steps do not bend."""
