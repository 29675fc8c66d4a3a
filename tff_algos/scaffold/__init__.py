"""SCAFFOLD: control variates against the drift of the clients."""
