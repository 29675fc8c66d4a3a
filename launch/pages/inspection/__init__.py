"""What launch.inspect says of data."""
