"""What was probably meant by an unknown flag or value: what other tools call it, or what is spelled alike."""

import difflib
import math
import re
from collections.abc import Collection, Iterable

# Where other tools write to. Our commands that read a finished run write into its folder.
OUTPUTS = frozenset({"output", "output_dir", "out", "out_dir", "save_dir"})
# What a flag is called elsewhere, and here.
OTHER_NAMES = {
    "learning_rate": ("lr", "eta", "local_lr", "client_lr", "client_learning_rate", "local_learning_rate", "lr_local"),
    "local_learning_rate": ("lr", "local_lr", "client_lr", "lr_local"),
    "epochs": ("local_epochs", "num_epochs", "n_epochs", "client_epochs", "local_ep"),
    "steps": ("local_steps", "num_steps", "local_iterations"),
    "inner_steps": ("epochs", "local_epochs", "num_inner_steps"),
    "proximal_weight": ("mu", "prox", "proximal_mu", "prox_mu", "fedprox_mu"),
    "optimizer": ("opt", "client_optimizer", "local_optimizer"),
    "server_learning_rate": ("server_lr", "global_lr", "eta_g"),
    "server_optimizer": ("server_opt", "global_optimizer"),
    "server_epsilon": ("tau", "server_tau"),
    "cohort_size": ("clients_per_round", "cohort", "num_sampled_clients", "frac", "fraction", "participation_rate"),
    "num_clusters": ("clusters", "k", "n_clusters"),
    "dp_epsilon": ("epsilon", "dp"),
    "compression_bits": ("compress", "compression", "quantize_updates", "bits"),
    "dirichlet_alpha": ("alpha", "dir_alpha", "concentration"),
    "batch_size": ("batch", "bs", "local_batch_size", "local_bs", "batchsize"),
    "label_column": ("label", "target_column", "label_col"),
    "client_column": ("client", "client_id", "client_col"),
    "num_clients": ("clients", "n_clients", "num_users", "users", "num_parties", "n_parties", "devices"),
    "rounds": ("num_rounds", "n_rounds", "comm_round", "comm_rounds", "communication_rounds", "global_rounds"),
    "rounds_per_evaluation": ("eval_every", "eval_interval", "evaluate_every", "frequency_of_the_test"),
    "rounds_per_checkpoint": ("save_every", "checkpoint_every", "checkpoint_interval"),
    "seed": ("random_seed", "random_state"),
    "seeds": ("seed",),
    "run_dir": ("run", "output", "output_dir", "out", "out_dir", "save_dir", "log_dir", "logdir", "runs"),
    "runs_dir": ("run_dir", "runs", "output_dir", "out_dir"),
    "runs": ("run_dir", "run_dirs", "runs_dir"),
    "partition": ("iid", "non_iid", "noniid", "split", "partitioning", "heterogeneity"),
    "device": ("gpu", "cuda", "use_gpu"),
    "npz": ("file", "data_file", "csv", "test_data", "data_path"),
    "data_dir": ("data_root", "root", "dataset_dir", "data_path"),
    "algo": ("algorithm", "alg", "strategy", "method"),
    "model": ("model_name", "arch", "architecture", "net", "network"),
    "test_fraction": ("test_size", "test_split"),
    "validation_fraction": ("val_fraction", "val_size", "validation_split"),
    "target_accuracy": ("target", "stop_at"),
    "patience": ("early_stopping", "early_stop", "early_stopping_patience", "early_stopping_rounds"),
    "target_metric": ("target_loss", "target_rmse", "target_score"),
    "track": ("wandb", "mlflow", "tracker"),
    "flagfiles": ("flagfile", "experiments", "config"),
    "flagfile": ("config", "cfg", "config_file"),
    "experiment": ("flagfiles", "config"),
    "search": ("space", "grid", "params"),
    "trials": ("num_trials", "n_trials"),
    "formats": ("format",),
    "jobs": ("n_jobs", "num_jobs", "parallel"),
    "tables": ("table", "paper"),
}
# The same of values, in small letters and digits.
OTHER_VALUES = {
    "dirichlet": ("noniid",),
    "fashion_mnist": ("fmnist", "mnistfashion"),
    "squared": ("mse", "l2", "meansquarederror"),
    "absolute": ("mae", "l1", "meanabsoluteerror"),
    "gpu": ("cuda",),
}
MOST = 3
CUTOFF = 0.7


def suggest_flags(name: str, known: Collection[str]) -> str:
    """A half sentence with the flags that were probably meant, empty if none comes near.

    Args:
      name: the unknown flag.
      known: the flags that there are or, where an algorithm is chosen, that do something with it.
    """
    name = name.replace("-", "_").lower()
    near = [flag for flag in (f"{name}s", name.removesuffix("s")) if flag in known and flag != name]
    near = near or _find_by_meaning(name, known)
    if not near:
        alike = difflib.get_close_matches(name, known, n=MOST, cutoff=CUTOFF)
        ratios = [difflib.SequenceMatcher(None, each, name).ratio() for each in alike]
        near = [each for each, ratio in zip(alike, ratios, strict=True) if ratio > ratios[0] - 0.1]
    return "; did you mean " + " or ".join(f"--{flag}" for flag in near[:MOST]) + "?" if near else ""


def _find_by_meaning(name: str, known: Collection[str]) -> list[str]:
    """The flags that mean what other tools call so: the algorithm's own setting or, where it has none, its parts'.

    A part's, such as the teacher's, ends like the setting; those of the server have names of their own.
    """
    called = [*(flag for flag, others in OTHER_NAMES.items() if name in others), name]
    if exact := [flag for flag in called if flag in known]:
        return list(dict.fromkeys(exact))
    of_parts = []
    for field in called:
        longer = tuple(f"_{other}" for other in OTHER_NAMES if other.endswith(f"_{field}"))
        of_parts += [flag for flag in known if flag.endswith(f"_{field}") and not f"_{flag}".endswith(longer)]
    return list(dict.fromkeys(sorted(of_parts, key=len)))


def suggest_value(value: str, choices: Iterable[str], own_form: str = "") -> str:
    """A half sentence with the choice that was probably meant, empty if none comes near.

    Args:
      value: what was given.
      choices: what could have been.
      own_form: how something of the user's own is written, as "module:NAME"; "" where there is no such thing.
    """
    choices = list(choices)
    plain = simplify(value)
    same = [choice for choice in choices if simplify(choice) == plain or plain in OTHER_VALUES.get(choice, ())]
    near = same or difflib.get_close_matches(value.lower(), choices, n=1)
    if not same and own_form and re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", value):
        module, _, name = value.rpartition(".")
        near = [f"{module}:<name in it>" if name == "py" else f"{module}:{name}"]
    return f"; did you mean {near[0]}?" if near else ""


def simplify(value: str) -> str:
    """A name as it is compared with others: its letters and digits, in small letters."""
    return re.sub(r"[\W_]+", "", value.lower())


def suggest_integer(value: str) -> str:
    """A half sentence with the whole number that is spelled as another number, as 1e3 or 5.0; empty for others."""
    try:
        number = float(value) if re.fullmatch(r"[-+.\dEe]+", value) else math.nan
    except ValueError:
        return ""
    return f"; did you mean {number:.0f}?" if number.is_integer() and abs(number) < 1e15 else ""
