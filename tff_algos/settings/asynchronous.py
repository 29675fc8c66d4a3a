"""The settings that asynchronous algorithms share: devices' times, scheduling, staleness. Imports no NumPy.

What they do stands in `training_times`, `scheduling` and `staleness` of `tff_algos/simulation`.
"""

import dataclasses

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.config_fields import ConfigError, Needs, check, setting

RANDOM, SIGNIFICANCE, FREQUENCY = POLICY_NAMES = ("random", "significance", "frequency")
CONSTANT, POLYNOMIAL, HINGE = STALENESS_NAMES = ("constant", "polynomial", "hinge")
# What the fields of a and b need, in the configs that have them beside a field `staleness`, the function's name.
DECAY_NEEDS = Needs("staleness", lambda name: name != CONSTANT, "another function")
GRACE_NEEDS = Needs("staleness", lambda name: name == HINGE, "the function hinge")
SPEEDS = ("redrawn", "persistent", "by_label", "profiles")

CONCURRENCY_HELP = "Devices that train at a time, one drawn for each place that falls free; 0: all, without a pause."


@dataclasses.dataclass(frozen=True)
class TrainingTimesConfig:
    """The times of the simulated devices."""

    speed: str = setting(
        "redrawn",
        "redrawn: T_k ~ U(0, max_training_s) anew at each start (the paper); persistent: drawn once a device; "
        "by_label: these, the longest for the holders of the highest labels, so that slow devices have classes of "
        "their own; profiles: by the device profiles, transfers included.",
        choices=SPEEDS,
    )
    max_training_s: float = setting(
        1.0,
        "Longest training in virtual seconds (paper: T_max).",
        above=0,
        needs=Needs("speed", lambda name: name != "profiles", "another speed"),
    )
    dropout: float = setting(0.0, "Chance that a device drops out while it trains.", minimum=0, below=1)
    max_away_s: float = setting(
        1.0,
        "A device that dropped out is away for U(0, this) virtual seconds.",
        above=0,
        needs=Needs("dropout", lambda chance: chance > 0, "a chance above 0"),
    )
    availability_cycle_s: float = setting(
        0.0,
        "Devices can be reached in a window of each cycle of this many virtual seconds; 0: always.",
        minimum=0,
    )
    availability_share: float = setting(
        1.0,
        "Length of a window as a share of its cycle; times the availability in the device's profile.",
        above=0,
        maximum=1,
        needs=Needs("availability_cycle_s", lambda cycle_s: cycle_s > 0, "a cycle above 0"),
    )

    def __post_init__(self):
        check(self)

    def check_devices(self, profiles: DeviceProfiles) -> None:
        """Raises ConfigError if the devices come from a file, and the times or the windows from elsewhere."""
        if profiles.names is not None and self.speed != "profiles":
            raise ConfigError("speed", self.speed, "profiles with --device_profiles, whose speeds would do nothing")
        if profiles.windows is not None and self.availability_cycle_s > 0:
            expected = "0 with --device_profiles whose devices have windows of their own"
            raise ConfigError("availability_cycle_s", self.availability_cycle_s, expected)
