"""What LEAF's JSON files hold."""
