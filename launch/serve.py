"""`python -m launch.serve --algo=fedavg` trains with clients that answer over the network; `--help` lists the flags."""
