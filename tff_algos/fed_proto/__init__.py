"""FedProto: clients of different models that share the means of their embeddings by class."""
