"""Which settings a resumed run may change, and which runs are the same but for what computes them."""

# What a resumed run may change: how long it goes on and where things lie, never what a round computes.
CHANGEABLE_ON_RESUME = frozenset(
    {"rounds", "rounds_per_checkpoint", "target_accuracy", "workers", "ray_address"}
    | {"data_dir", "shard_dir", "npz", "building_csv", "run_dir", "resume", "overwrite", "track", "run_page"}
)

# What computes a run, and where: its numbers agree to rounding, but only the same gives the same bytes.
MEANS_OF_COMPUTING = frozenset({"runtime", "device", "ray_shares"})
