"""`python -m launch` lists the commands, and `python -m launch train ...` runs one, as the console script does."""

from launch.console.stop_signals import leave
from launch.federated import main

leave(main(program="python -m launch"))
