"""The flags of `launch.serve` beside those of a run, and how a live run is told from others. Imports no TensorFlow.

They say how clients are asked, not what is computed; so they are no settings of a run. The run folder keeps them in
`serve.json`, from which a run goes on.
"""

import dataclasses
import json
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

from files.reading import read_regular
from files.writing import write_text
from launch.settings.errors import FlagError
from launch.settings.flag_fields import can_hold, iterate_fields, replace_fields
from launch.settings.run_config import CONFIG_FILE, MAX_JSON
from tff_algos.settings.config_fields import ConfigError, check, format_value, setting

SERVE_FILE = "serve.json"
LIVE = "live"  # in config.json: that clients answered over the network
PROTOCOL, SEATS, OWN_DATA = "protocol", "seats", "own_data"  # what it has
ON_SERVER, ON_CLIENTS = "server", "clients"
EACH, SHARED = "each", "shared"
MOST_SEATS = 10_000
MOST_S = 1e7  # four months
# What says how a round that waits ends; asynchronous algorithms have none.
OF_WAITING_ROUNDS = ("round_deadline_s", "least_answers", "more_asked")
# What a live run that goes on cannot have otherwise: its seats are fixed.
FIXED = ("own_data", "seats", "schema", "link")
ONCE = ("free_seat",)  # what only a run that goes on can have, when it is started


@dataclasses.dataclass(frozen=True)
class ServeFlags:
    """The flags of this command beside those of `launch.train`."""

    port: int = setting(8700, "Port to listen on; 0: a free one.", minimum=0, maximum=65535)
    host: str = setting("127.0.0.1", "Address of this machine to listen on; 0.0.0.0: all, so that others reach it.")
    tls_certificate: str = setting("", "PEM file of a certificate, by which it speaks https.")
    tls_key: str = setting("", "PEM file of its key, if that is another one.")
    public_url: str = setting("", "Address by which clients reach it, if that is another one: https://example.org.")
    start_with: int = setting(
        0, "Clients to wait for before round 1; 0: as many as there are seats.", minimum=0, maximum=MOST_SEATS
    )
    own_data: bool = setting(False, "Clients bring examples of their own; else the server deals those of the data set.")
    seats: int = setting(
        0, "With --own_data: clients that may join before round 1; 0: --start_with.", minimum=0, maximum=MOST_SEATS
    )
    schema: str = setting("", "With --own_data: JSON file that describes the examples, in place of a data set.")
    evaluate_on: str = setting(
        ON_SERVER,
        "Where models are tested: on the server's test set, or on the clients'.",
        choices=(ON_SERVER, ON_CLIENTS),
    )
    round_deadline_s: float = setting(
        60.0, "Seconds after which a round ends without the answers missing.", above=0, maximum=MOST_S
    )
    least_answers: int = setting(
        1, "Answers below which a round leaves the model as it is; in a private run it is noise alone.", minimum=1
    )
    more_asked: int = setting(0, "Clients asked beyond the cohort, the slowest of which are not waited for.", minimum=0)
    away_after_s: float = setting(
        10.0, "Seconds without a connection after which a client has left.", minimum=0, maximum=MOST_S
    )
    most_norm: float = setting(
        0.0,
        "Largest L2 norm of an update that counts; 0: 1000 times the norm of the model, which is taken as at least 1.",
        minimum=0,
    )
    most_rejected: int = setting(
        5,
        "Rejected answers in a row, while those of others count, after which a client is asked no more, unless too few "
        "for a round would be left; 0: any number.",
        minimum=0,
    )
    link: str = setting(EACH, "Links to hand out: one for each client, or one for all.", choices=(EACH, SHARED))
    qr: bool = setting(True, "Shows the link as a QR code, on a terminal.")
    free_seat: tuple[int, ...] = setting(
        (),
        "With --resume: seats to give away anew, such as 3 or 1,4, since their clients have lost their keys.",
        minimum=0,
        maximum=MOST_SEATS - 1,
        expected="numbers of seats with commas between",
    )

    def __post_init__(self):
        check(self)
        if self.free_seat and self.own_data:
            expected = "none with --own_data, where a seat is for its client's own examples; start a new run"
            raise ConfigError("free_seat", format_value(self.free_seat), expected)
        for name in ("seats", "schema"):
            if getattr(self, name) and not self.own_data:
                raise ConfigError(name, getattr(self, name), "--own_data beside it; else the data set has the seats")
        if self.tls_key and not self.tls_certificate:
            raise ConfigError("tls_key", self.tls_key, "--tls_certificate beside it")
        if self.own_data and not (self.start_with or self.seats):
            raise ConfigError("own_data", True, "--start_with beside it: how many clients to wait for before round 1")
        if self.seats and self.start_with > self.seats:
            raise ConfigError("start_with", self.start_with, f"at most --seats={self.seats}")

    @property
    def most_seats(self) -> int:
        """Of a run with clients' own data: how many may join."""
        return self.seats or self.start_with


def build_serve_flags(values: Mapping[str, Any]) -> ServeFlags:
    """The flags of these values, and else their defaults. Raises FlagError for those that cannot be meant."""
    if values.get("schema") and "evaluate_on" not in values:  # by which the server has no test examples
        values = {**values, "evaluate_on": ON_CLIENTS}
    try:
        return replace_fields(ServeFlags(), values)
    except ConfigError as error:
        raise FlagError(f"--{error}") from None


def write_serve_flags(folder: pathlib.Path, flags: ServeFlags) -> None:
    """Keeps the flags in a run's folder, to go on with; those that are for once are left out."""
    kept = {name: value for name, value in dataclasses.asdict(flags).items() if name not in ONCE}
    write_text(folder / SERVE_FILE, json.dumps(kept, indent=2) + "\n")


def choose_resumed_flags(run_dir: str, given: Mapping[str, Any]) -> ServeFlags:
    """The flags of a run that goes on: those given and else those that it had; the defaults where its file is gone.

    Raises:
      FlagError: the file is damaged, or what is given is fixed since round 1.
    """
    path = pathlib.Path(run_dir) / SERVE_FILE
    try:
        stored = json.loads(read_regular(path, MAX_JSON))
        fields = {field.name: field for field in iterate_fields(ServeFlags())}
        is_right = isinstance(stored, dict) and all(
            name in fields and can_hold(fields[name], value) for name, value in stored.items()
        )
    except FileNotFoundError:
        stored, is_right = {}, True
    except (OSError, ValueError, RecursionError):
        is_right = False
    if not is_right:
        raise FlagError(f"{path}: damaged; remove it, and give the flags that launch.serve was called with")
    for name in FIXED:
        if stored and name in given and given[name] != stored.get(name):
            raise FlagError(
                f"cannot resume with other seats: --{name}={given[name]} (the run has {stored.get(name) or 'none'}); "
                "leave it out or start a new run"
            )
    return build_serve_flags({**stored, **given})


def check_waits(flags: ServeFlags, given: Collection[str], waits: bool, algo: str) -> None:
    """Raises FlagError for a flag that was given and says how a round ends, if the algorithm's rounds do not wait."""
    for name in OF_WAITING_ROUNDS:
        if name in given and not waits:
            raise FlagError(f"--{name}={getattr(flags, name)}: does nothing with --algo={algo}, whose rounds wait for "
                            "nobody; leave it out")  # fmt: skip


def is_live_run(run_dir: str | pathlib.Path) -> bool:
    """Whether a folder holds a live run, by its `config.json`; not if that cannot be read."""
    try:
        return isinstance(json.loads(read_regular(pathlib.Path(run_dir) / CONFIG_FILE, MAX_JSON)).get(LIVE), dict)
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
