"""Writes sequences of characters and what follows each as an `npz` file: `write_text.py text.npz`.

The text is a counting rhyme, so that a model learns it in seconds: what follows is always known from the line before.
"""

import sys

import numpy as np

LINES = (
    "one two buckle my shoe",
    "three four shut the door",
    "five six pick up sticks",
    "seven eight lay them straight",
)
POSITIONS, NUM_TEST, STEP = 24, 40, 3


def main(path: str) -> None:
    """Cuts the rhyme, said many times, into sequences."""
    text = "\n".join(LINES * 40)
    names = ["<pad>", *sorted(set(text)), "<oov>", "<bos>", "<eos>"]
    tokens = np.array([names.index(character) for character in text], np.int32)
    starts = np.arange(0, len(tokens) - POSITIONS - 1, STEP)
    x = np.stack([tokens[start : start + POSITIONS] for start in starts])
    y = np.stack([tokens[start + 1 : start + POSITIONS + 1] for start in starts])
    shown = np.array([name.replace("\n", "\\n") for name in names])
    test = {"x_test": x[-NUM_TEST:], "y_test": y[-NUM_TEST:]}
    np.savez(path, x=x[:-NUM_TEST], y=y[:-NUM_TEST], class_names=shown, **test)


if __name__ == "__main__":
    main(sys.argv[1])
