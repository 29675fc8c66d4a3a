"""What happens on a client: its data, local training, evaluation, compression."""
