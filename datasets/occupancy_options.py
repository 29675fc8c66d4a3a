"""What the reader of Occupancy Detection may be told. Imports nothing heavy."""

from datasets.options import declare_options
from tff_algos.settings.config_fields import needs_value, setting

OCCUPANCY_FEATURES = ("temperature_humidity", "all")
OF_OCCUPANCY = needs_value("dataset", "occupancy")


@declare_options
class OccupancyOptions:
    """See `datasets.occupancy`."""

    occupancy_client_hours: int = setting(
        12, "Hours of readings that make a client of occupancy.", minimum=1, needs=OF_OCCUPANCY
    )
    occupancy_features: str = setting(
        "temperature_humidity",
        "Input of occupancy: two of its readings, or all five.",
        choices=OCCUPANCY_FEATURES,
        needs=OF_OCCUPANCY,
    )
