"""What TensorFlow Federated's SQLite files hold."""
