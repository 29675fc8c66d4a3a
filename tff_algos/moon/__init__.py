"""MOON: clients whose representations are drawn to the global model's, and away from their own last ones."""
