"""Which settings a resumed run may change, and which runs are the same but for what computes them."""

# Where files and machines are, and how a run was asked for: neither says what it is. Earlier versions had `workers`.
PLACES = frozenset(
    {"run_dir", "data_dir", "client_dir", "npz", "data", "replay", "building_csv", "workers", "ray_address"}
)
REQUESTS = frozenset({"resume", "overwrite", "trust_module", "track", "run_page", "plot_formats", "plot_smoothing"})

# What no run has from its records, with what stands there: asked for once, not to be repeated.
ASKED_ONCE = {"resume": False, "overwrite": False, "trust_module": "", "building_csv": ""}

# How often a run is kept and its shared models are measured.
INTERVALS = frozenset({"rounds_per_checkpoint", "rounds_per_shared_evaluation"})

# What ends a run.
LIMITS = frozenset(
    {"rounds", "target_accuracy", "target_metric", "patience", "most_bytes", "most_virtual_s", "limit_fine_tuning"}
)

# What a resumed run may change: how long it goes on and where things lie, never what a round computes.
CHANGEABLE_ON_RESUME = PLACES | REQUESTS | INTERVALS | LIMITS

# What computes a run, and where: its numbers agree to rounding, but only the same gives the same bytes.
MEANS_OF_COMPUTING = frozenset({"runtime", "device", "compile", "ray_shares"})
