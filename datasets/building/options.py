"""What the simulated building may be told. Imports nothing heavy."""

from datasets.options import declare_options
from tff_algos.settings.config_fields import Needs, needs_value, setting

BUILDING_HETEROGENEITY = ("low", "medium", "high", "structured")
OF_BUILDING = needs_value("dataset", "building")


@declare_options
class BuildingOptions:
    """See `datasets.building.readings`."""

    building_num_sensors: int = setting(
        100, "Sensors of building, each a client.", minimum=1, maximum=10**5, needs=OF_BUILDING
    )
    building_heterogeneity: str = setting(
        "medium",
        "How much the rooms and sensors of building differ.",
        choices=BUILDING_HETEROGENEITY,
        needs=OF_BUILDING,
    )
    building_csv: str = setting(
        "",
        "File to save the readings of building to, as CSV; empty: not saved.",
        needs=(OF_BUILDING, Needs("smoke", lambda smoke: not smoke, "--no{flag}")),
    )
