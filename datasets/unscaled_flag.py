"""What `--unscaled` can be; see `datasets.unscaled` for what comes of it. Imports no NumPy, as all that flags need."""

from datasets.layouts import AUTO

CATEGORIES, NOTHING = "categories", "nothing"
FORM = f"{AUTO}, {CATEGORIES}, {NOTHING}, or the number that fills sequences up, such as -1"
LARGEST = 3.4e38  # of a float32, roughly


def is_unscaled(text: str) -> bool:
    """Whether the flag can be this."""
    try:
        return text in (AUTO, CATEGORIES, NOTHING) or abs(float(text)) <= LARGEST
    except ValueError:
        return False
