"""AMFL-P: a start from which unequal devices personalise a model, meta-learned."""
