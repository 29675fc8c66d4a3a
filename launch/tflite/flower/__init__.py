"""A Flower app: trains the training file of a finished run on the nodes of a federation."""
