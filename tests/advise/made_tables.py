"""Tables whose best known answer to "does federation pay?" is known, for checks of advice.

`python tests/advise/made_tables.py <folder>` writes all of them. Every row has a `client`, a `label`, "low" or "high",
and numbers from the normal distribution. Who differs from whom is in the labels alone, never in the numbers: nothing
but training tells it. The numbers in the docstrings are accuracies of scikit-learn's logistic regression, trained on
the first 60 % of each client's rows and tested on the last 25 %, as means over the seeds 0 to 4: of each client alone,
of one model for all, of one for every second client (client_01, client_03, ... and the others), and of each client's
own most frequent label.
"""

import os
import pathlib
import sys

import numpy as np
import pandas as pd

NUM_CLIENTS = 20
LABELS = ("low", "high")


def make_noise(seed: int = 0) -> pd.DataFrame:
    """Labels that no feature tells: nothing is learned. 60 rows a client.

    Alone 52 %, one model 48 %, two models 50 %, most frequent label 50 %.
    """
    rng, x = _draw_features(seed, 60, 8)
    return _make_table(x, rng.integers(0, 2, x.shape[:2]))


def make_own_rules(seed: int = 0) -> pd.DataFrame:
    """A rule for each client, and the rules of all cancel out: train alone. 150 rows a client.

    A rule is a random plane through 0. The mean of all rules is taken off each, without which one model would be right
    a little more often than not.

    Alone 95 %, one model 50 %, two models 57 %, most frequent label 49 %.
    """
    rng, x = _draw_features(seed, 150, 8)
    planes = rng.normal(size=(NUM_CLIENTS, x.shape[2]))
    planes /= np.linalg.norm(planes, axis=1, keepdims=True)
    return _make_table(x, _apply(planes - planes.mean(axis=0), x))


def make_two_kinds(seed: int = 0) -> pd.DataFrame:
    """Two kinds of clients, in turn, whose labels are each other's opposite: a model for each kind. 30 rows a client.

    Alone 76 %, one model 50 %, two models 97 %, most frequent label 49 %.
    """
    rng, x = _draw_features(seed, 30, 12)
    signs = np.where(np.arange(NUM_CLIENTS) % 2, -1, 1)
    return _make_table(x, _apply(signs[:, np.newaxis] * rng.normal(size=x.shape[2]), x))


def make_shared(seed: int = 0) -> pd.DataFrame:
    """One rule for all clients, who have 15 rows each: federate.

    Alone 68 %, one model 97 %, two models 94 %, most frequent label 52 %.
    """
    rng, x = _draw_features(seed, 15, 8)
    return _make_table(x, _apply(np.tile(rng.normal(size=x.shape[2]), (NUM_CLIENTS, 1)), x))


MADE_TABLES = {
    "noise": make_noise,
    "own_rules": make_own_rules,
    "two_kinds": make_two_kinds,
    "shared": make_shared,
}


def write_made_table(name: str, folder: str | os.PathLike, seed: int = 0) -> str:
    """The path of a CSV of this name of `MADE_TABLES` in a folder, which is made."""
    path = pathlib.Path(folder) / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    MADE_TABLES[name](seed).to_csv(path, index=False)
    return str(path)


def _draw_features(seed: int, num_rows: int, num_features: int) -> tuple[np.random.Generator, np.ndarray]:
    """A generator, and numbers as they will be written: float64, shape (clients, rows, features)."""
    rng = np.random.default_rng(seed)
    return rng, np.round(rng.normal(size=(NUM_CLIENTS, num_rows, num_features)), 4)


def _apply(planes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """On which side of its client's plane, shape (clients, features), each row lies: 0 or 1, shape (clients, rows)."""
    return (np.einsum("crf,cf->cr", x, planes) > 0).astype(int)


def _make_table(x: np.ndarray, sides: np.ndarray) -> pd.DataFrame:
    num_clients, num_rows, num_features = x.shape
    columns = {"client": np.repeat([f"client_{client:02}" for client in range(1, num_clients + 1)], num_rows)}
    columns |= {f"x_{feature + 1}": x[..., feature].ravel() for feature in range(num_features)}
    return pd.DataFrame({**columns, "label": np.array(LABELS)[sides.ravel()]})


if __name__ == "__main__":
    for made in MADE_TABLES:
        print(write_made_table(made, sys.argv[1]))
