"""What a run is: the table of algorithms, the config of a run, its flags and its title."""
