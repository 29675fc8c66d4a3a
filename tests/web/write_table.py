"""Writes a table of seven numbers, a category and a price that follows from them: `write_table.py table.csv`."""

import csv
import sys

import numpy as np

NAMES = ("age", "income", "temperature", "pressure", "distance", "visits", "score", "city", "label")
CITIES = ("Rome", "Oslo", "Lima", "Bern")
ROWS = 400


def main(path: str) -> None:
    """The prices lie between 0 and 20, so that some steps of training are enough."""
    random = np.random.default_rng(0)
    numbers = np.column_stack([random.integers(18, 80, ROWS), random.uniform(-1, 1, (ROWS, 6)).round(3)])
    cities = random.integers(len(CITIES), size=ROWS)
    prices = numbers[:, 0] / 8 + 2 * numbers[:, 1] + 2 * cities
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(NAMES)
        for row, city, price in zip(numbers.tolist(), cities, prices, strict=True):
            table.writerow([int(row[0]), *row[1:], CITIES[city], f"{price:.3f}"])


if __name__ == "__main__":
    main(sys.argv[1])
