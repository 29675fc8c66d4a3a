"""The flag `--on_device_training=none|head|full`. It was a boolean: bare it means `full`, with `no` before it `none`.

Imports no TensorFlow, so that `--help` answers at once.
"""

from absl import flags as absl_flags

from models.model_names import TRAINED_PARTS

NONE = "none"

_CHOICES = (NONE, *TRAINED_PARTS)
_OF_BOOLEANS = {**dict.fromkeys(("true", "t", "1"), "full"), **dict.fromkeys(("false", "f", "0"), NONE)}


class _PartParser(absl_flags.ArgumentParser):
    """Reads what is trained, or a boolean in its place."""

    def parse(self, argument: str) -> str:
        part = _OF_BOOLEANS.get(argument.lower(), argument)
        if part not in _CHOICES:
            raise ValueError(f"expected one of {', '.join(_CHOICES)}")
        return part


def define_training_flag(values: absl_flags.FlagValues) -> None:
    """Adds the flag to `values`; its value is one of none, head and full."""
    help_text = (
        "Also write each model in a form that can be trained on the phone: head trains its last dense layers, full all "
        "of it; without a value, full."
    )
    # absl gives the text "true" to a bare flag, and "false" to --noon_device_training, if it is told of a boolean.
    flag = absl_flags.Flag(
        _PartParser(), absl_flags.ArgumentSerializer(), "on_device_training", NONE, help_text, boolean=True
    )
    absl_flags.DEFINE_flag(flag, values)
