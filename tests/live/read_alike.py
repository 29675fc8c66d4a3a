"""Files that people might give are read by the page (launch/live/web, under Node) as Python reads them.

`python tests/live/read_alike.py` draws organisers' tables, describes them by the suite, draws hundreds of clients'
tables for each kind of trouble, and reads them by `join.py` and by the page: arrays must be the same to the bit, and
lines word for word. Pictures must have the pixels that the suite's own reader makes of them, or the next.
The last line says how many were compared. Exit code 1: some differ, and are printed.
"""

import base64
import contextlib
import csv
import gzip
import io
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import PIL.Image

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import Preprocessing
from datasets.formats.csv import FORMAT as CSV
from launch.live import join
from launch.live.description import describe_table

LAUNCH = pathlib.Path(__file__).resolve().parents[2] / "launch"
MODULES = LAUNCH / "tflite" / "web", LAUNCH / "live" / "web"  # of equal names the last ones
NUM_DESCRIPTIONS, TABLES_EACH, NUM_TEXTS, NUM_PICTURES = 70, 9, 500, 60
HIDDEN = "\t\n\r\x00\x1c\x1f \x7f\x85\xa0\xad\u200b\u2028\u3000\ufeff\U000e0001\\'\""
NAMES = ("age", "weight", "colour", "smokes", "city", "Größe", "dose, mg", 'a "b"', "x", "blood pressure", "id")
_WORDS = (
    "red|Red|green|blue|Rome|Oslo|ü|cat|z|O'Brien|Zürich|1;2|naïve|5|05|“quoted”|back\\slash|日本|\U0001d4b3|a b|x, y"
)
WORDS = (*_WORDS.split("|"), "a\u00a0b", "tab\tin", 'it\'s "so"', "two\nlines", "\u202eleft")
CLASSES = ("no yes", "no yes may_be", "0 1", "1 2 3", "-1 1", "1.5 2.5", "A B C", "healthy ill", "True False")
CLASSES += ("low lower lowest high", "Süd Nord")
BLANKS = ("", "NA", "n/a", "?", " null ", "NaN", "-", "None", "-999", "999", "missing")
_ODD = (
    "1e400|-0.0|1_000|\u0663|1,230|1.230|nan|+nan|inf|-Infinity|3.4028235e38|3.4028234e38|1e-46|1.17549435e-38|many|i|e5"
    "|2024-05-01|1/2/3|45%|$3|1.5.2|12,5|0,5|.5|5.|+7|0x10|1e|--1|yes|No|TRUE|16777217|0.1000000014901161193847656|.|-"
    "|1,2,3|1.2,3|007|1e5|\u0661\u0662\u066b\u0665|infinite|INF|+|1e+3|1E-3|340282346638528859811704183484516925440"
)
ODD_NUMBERS = (*_ODD.split("|"), "5 kg", "1 000", "1\u00a0000")
# Numbers of examples, and the key of the client who holds some out.
PARTS = ((1, "a"), (4, "a"), (5, "a"), (14, "b"), (100, "c"), (100, "c"), (100, "d"))
# The path of a picture, the classes, and the place of its own, or a line.
PLACES = (
    ("all/3/a.png", ["3", "4"], 0),
    ("3/a.png", ["2", "3"], 1),
    ("all/ Cat/a.png", ["dog", "cat"], 1),
    ("all/cat/a.png", ["Cat", "cat"], 1),
    ("all/CAT/a.png", ["Cat", "cat"], "the run has no class 'CAT'; did you mean cat?"),
    ("all/zebra/a.png", ["cat"], "the run has no class 'zebra'"),
    ("a.png", ["cat"], "the run has no class ''"),
)
# Files that no drawing would find; the description is that of PEOPLE.
PEOPLE = "age,colour,smokes,label\n30,red,yes,no\n41.5,green,no,yes\n7,red,true,no\n1e2,blue,0,yes\n"
ODD_FILES = (
    *(
        b"",
        b"\n\n",
        b"age",
        b"age,colour,smokes,label",
        PEOPLE.encode("utf-16"),
        PEOPLE.encode("utf-8-sig"),
        b"\x1f\x8b",
    ),
    *(
        gzip.compress(PEOPLE.encode()),
        gzip.compress(PEOPLE.encode())[:40],
        PEOPLE.encode()[:-1],
        b"\xef\xbb\xbfsep=;\n",
    ),
    PEOPLE.replace("red", '"re"d', 1).encode(),
    PEOPLE.replace("red", '"red', 1).encode(),
    PEOPLE.replace("red", 're"d', 1).encode(),
    PEOPLE.replace("red", '"r""ed"', 1).encode(),
    PEOPLE.replace("red", '"red\nor so"', 1).replace("41.5", "many").encode(),
    PEOPLE.replace("red", "", 1).encode(),
    PEOPLE.replace("\n", "\n\n").encode(),
    PEOPLE.replace("\n", "\r").replace("1e2", "x").encode(),
    PEOPLE.replace("\n", "\r\n").replace("1e2", "x").encode(),
    PEOPLE.replace(",", ";").replace("41.5", "41,5").encode(),
    PEOPLE.replace(",", "\t").replace("41.5", "41,5").encode(),
    PEOPLE.replace(",", "|").encode(),
    b"SEP=|\r\n" + PEOPLE.replace(",", "|").encode(),
    "\u017fep=|\n".encode() + PEOPLE.replace(",", "|").encode(),
    b"sep=|\n" + PEOPLE.encode(),
    PEOPLE.encode().replace(b"red", bytes(range(0x80, 0x100)), 1),
    PEOPLE.replace("red", "x" * 131072, 1).encode(),
    PEOPLE.replace("red", "x" * 131073, 1).encode(),
    PEOPLE.replace("red", '"' + "x" * 140000, 1).encode(),
    PEOPLE.replace("red", "\U0001d4b3" * 131072, 1).encode(),
    PEOPLE.replace("no\n", "n" * 300 + "\n", 1).encode(),
    PEOPLE.replace("no\n", "\u2028no\x1f \n", 1).encode(),
    PEOPLE.replace("no\n", "\ufeffno\n", 1).encode(),
    PEOPLE.replace("no\n", "NO\n", 1).encode(),
    PEOPLE.replace("age", "ages").encode(),
    PEOPLE.replace("age", "smokes").encode(),
    PEOPLE.replace("label", "").encode(),
    (PEOPLE + "1,2\n").encode(),
    (PEOPLE + " \n").encode(),
    (PEOPLE + "1,2,3,4,5\n").encode(),
    ("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o\n" + "1," * 14 + "1\n").encode(),
    "".join(f"{line},{'x' * 30}\n" for line in PEOPLE.splitlines()).encode(),
)


def draw_numbers(rng: random.Random, num: int) -> list[str]:
    kind = rng.choice(["whole", "float", "comma", "truth", "constant"])
    write = {
        "whole": lambda: str(rng.randint(-5, 10 ** rng.randint(1, 7))),
        "float": lambda: repr(rng.uniform(-1, 1) * 10.0 ** rng.randint(-8, 12)),
        "comma": lambda: f"{rng.uniform(-99, 99):.2f}".replace(".", ","),
        "truth": lambda: rng.choice(["yes", "No", "TRUE", "false"]),
        "constant": lambda: "3.5",
    }[kind]
    return [write() for _ in range(num)]


def draw_categories(rng: random.Random, num: int) -> list[str]:
    words = rng.sample(WORDS, rng.randint(2, 6))
    return [rng.choice(words) for _ in range(num)]


def write_rows(rows: list[list[str]], separator: str, line_break: str = "\n", quoting: int = csv.QUOTE_MINIMAL) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, lineterminator=line_break, quoting=quoting).writerows(rows)
    return stream.getvalue()


def draw_organiser(rng: random.Random, folder: pathlib.Path) -> tuple[dict, dict[str, list[str]]] | None:
    """(description, columns) of an organiser's table; None if the suite refuses it."""
    num = rng.randint(8, 30)
    missing = rng.choice(["refuse", "median", "median", "drop"])
    names = rng.sample(NAMES, rng.randint(1, 5))
    columns = {name: rng.choice([draw_numbers, draw_categories])(rng, num) for name in names}
    if missing != "refuse":
        for values in columns.values():
            for row in range(3, num):
                if rng.random() < 0.15:
                    values[row] = rng.choice(BLANKS[:4])
    classes = rng.choice(CLASSES).split()
    columns["label"] = [classes[row % len(classes)] for row in range(num)]
    options = {"missing": missing, "task": "classification", "label_column": "label"}
    options |= {"categories": rng.choice(["one_hot", "index"]), "join_spellings": rng.random() < 0.3}
    if rng.random() < 0.4:
        options["missing_words"] = rng.choice(["-999,n/a,?", "missing,999.0", "NA", "Null,-,0"])
    if rng.random() < 0.2:
        options["decimal_mark"] = rng.choice(["comma", "point"])
    if rng.random() < 0.2:
        options["drop_columns"] = names[0]
    path = folder / "organiser.csv"
    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    path.write_text(write_rows(rows, rng.choice([",", ";", "\t"])), encoding="utf-8", newline="")
    preprocessing = rng.choice([Preprocessing(), Preprocessing(0.1, -0.3), Preprocessing(1 / 3)])
    try:
        chosen = DatasetOptions(**options)
        return describe_table(CSV.make_table(str(path), chosen), chosen, preprocessing), columns
    except (DatasetError, ValueError):
        return None


def draw_cell(rng: random.Random, values: list[str], trouble: float) -> str:
    text = rng.choice(values)
    if rng.random() >= trouble:
        return text
    near = [text.upper(), text.lower(), f" {text} ", f"{text}\u00a0", text + text[-1:], text[1:], f"\x1f{text}"]
    return rng.choice([*near, *rng.sample(BLANKS, 3), *rng.sample(ODD_NUMBERS, 5), *rng.sample(WORDS, 2)])


def draw_table(rng: random.Random, columns: dict[str, list[str]]) -> bytes:
    """A client's table: of the organiser's columns in some order, more or fewer, in some file format."""
    trouble = rng.choice([0.0, 0.0, 0.003, 0.02, 0.1])
    names = list(columns)
    rng.shuffle(names)
    if rng.random() < 0.3:
        names.insert(rng.randrange(len(names) + 1), rng.choice(["extra", "note", "", "labels"]))
    header = list(names)
    if rng.random() < 0.12:
        place = rng.randrange(len(header))
        header[place] = rng.choice([header[place].upper(), header[place][:-1], header[place] + "s", header[0], "other"])
    num = rng.choice([1, 2, 4, 12, 60, 250])
    rows = [[draw_cell(rng, columns.get(name, ["1", "x"]), trouble) for name in names] for _ in range(num)]
    if rng.random() < 0.04:
        rng.choice(rows).append("more")
    separator, line_break = rng.choice([",", ",", ";", "\t", "|"]), rng.choice(["\n", "\r\n", "\r"])
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    text = write_rows([header, *rows], separator, line_break, quoting)
    if rng.random() < 0.15:
        text = f"sep={separator}{line_break}{text}"
    if rng.random() < 0.15:
        text = text.replace(line_break, 2 * line_break, rng.randint(1, 3))
    if rng.random() < 0.05:
        place = rng.randrange(len(text))
        text = text[:place] + rng.choice(['"', separator, line_break, "'"]) + text[place:]
    if rng.random() < 0.1:
        text = text.rstrip("\r\n")
    content = text.encode(rng.choice(["utf-8", "utf-8-sig", "cp1252"]), "replace")
    return gzip.compress(content, mtime=0) if rng.random() < 0.1 else content


def read_by_python(name: str, description: dict) -> dict:
    """What `join.py` makes of a file in the working directory."""
    notes: list[str] = []
    said, join.say = join.say, notes.append
    try:
        x, y = join.read_table(name, description)
    except join.JoinError as error:
        return {"error": str(error), "notes": notes}
    finally:
        join.say = said
    x = base64.b64encode(x.astype("<f4").tobytes()).decode()
    return {"x": x, "y": y.tolist(), "width": description_width(description), "notes": notes}


def description_width(description: dict) -> int:
    return sum(len(each["values"]) if each["kind"] == "one_hot" else 1 for each in description["columns"])


def make_cases(folder: pathlib.Path) -> list[dict]:
    """The description and the file of each case, which is written into the folder."""
    rng, cases, num_described = random.Random(3), [], 0

    def add(content: bytes, description: dict) -> None:
        name = f"table {len(cases)}.csv"
        (folder / name).write_bytes(content)
        cases.append({"name": name, "description": description})

    options = DatasetOptions()
    (folder / "organiser.csv").write_text(PEOPLE, encoding="utf-8")
    people = describe_table(CSV.make_table(str(folder / "organiser.csv"), options), options, Preprocessing())
    for content in ODD_FILES:
        for missing in ("refuse", "drop"):
            add(content, people | {"missing": missing})
    for text in ODD_NUMBERS:
        for mark, separator in (("auto", ";"), ("auto", "\t"), ("comma", ";"), ("point", "|")):
            rows = (
                PEOPLE.replace(",", separator).replace("41.5", text).replace("1e2", rng.choice(["8", "0,5", "1,234"]))
            )
            add(rows.encode(), people | {"decimal_mark": mark})
    while num_described < NUM_DESCRIPTIONS:
        if found := draw_organiser(rng, folder):
            num_described += 1
            for _ in range(TABLES_EACH):
                add(draw_table(rng, found[1]), found[0])
    return cases


def draw_texts(num: int) -> list[tuple[str, list[str]]]:
    """Texts, each with names that it may have meant; some are long, with characters that are frequent in them."""
    rng, drawn = random.Random(4), []
    letters = "abcdeefgé A\u0130ß"
    for _ in range(num):
        length = rng.choice([0, 1, 3, 6, 6, 12, 90, 220])
        text = "".join(rng.choices(letters, k=length))
        names = []
        for _ in range(rng.randint(1, 15)):
            near = list(text)
            for _ in range(rng.choice([1, 2, len(near) // 3])):
                near.insert(rng.randint(0, len(near)), rng.choice([*letters, *HIDDEN]))
                near.pop(rng.randrange(len(near)))
            names.append("".join(near) if rng.random() < 0.8 else "".join(rng.choices(letters, k=6)))
        drawn.append((text if rng.random() < 0.7 else rng.choice(HIDDEN) + text + rng.choice(HIDDEN), names))
    return drawn


def describe_text(text: str, names: list[str]) -> list[str]:
    """What messages make of a text."""
    return [
        repr(text),
        text.strip(),
        join._suggest(text, names),
        join._list_names(names),
        repr(text[: join.MOST_SHOWN]),
    ]


def draw_pictures(num: int) -> list[dict]:
    """Pixels of pictures and what they are to become, and `expected`, (height * width * channels,), by Pillow."""
    rng, drawn = np.random.default_rng(5), []
    for _ in range(num):
        width, height, *wanted = rng.integers(1, 60, 4).tolist()
        channels = int(rng.choice([1, 3]))
        rgba = rng.integers(0, 256, (height, width, 4), np.uint8)
        image = PIL.Image.fromarray(rgba[..., :3]).convert("L" if channels == 1 else "RGB")
        expected = np.asarray(image.resize(tuple(wanted), PIL.Image.Resampling.BILINEAR))
        told = {"width": wanted[0], "height": wanted[1], "channels": channels, "low": 0, "high": 255, "isWhole": True}
        pixels = base64.b64encode(rgba.tobytes()).decode()
        drawn.append({"rgba": pixels, "width": width, "height": height, "image": told, "expected": expected.ravel()})
    return drawn


def compare_pictures(pictures: list[dict], found: list[list[float]]) -> str:
    """A line on what differs; "" if it is no more than rounding."""
    stored = [np.array(each) for each in found]
    if [each.shape for each in stored] != [each["expected"].shape for each in pictures]:
        return "pictures: other shapes"
    differences = np.concatenate([np.abs(a - b["expected"]) for a, b in zip(stored, pictures, strict=True)])
    # Pillow scales the height first where that is less work, and rounds between.
    return f"pictures: pixels differ by {differences.max()}" if differences.max() > 1 else ""


def check_parts(found: list[dict]) -> str:
    """A line if what is held out is no fifth, not drawn by the key alone, or out of order; "" else."""
    for (number, _), part in zip(PARTS, found, strict=True):
        train, test = part["trainY"], part["testY"]
        is_split = sorted(train + test) == list(range(number)) and len(test) == number // 5
        is_split &= train == sorted(train) and test == sorted(test)
        rows = [value for row in train for value in (2 * row, 2 * row + 1)]
        if not is_split or part["trainX"] != rows:
            return f"of {number} examples {part}"
    return "" if found[-3] == found[-2] != found[-1] else "what is held out does not follow from the key"


def check_places(found: list) -> str:
    """A line if a folder is taken for another class; "" else."""
    expected = [each[2] for each in PLACES]
    return "" if found == expected else f"folders: {found}, expected {expected}"


def compare(name: str, expected: dict, found: dict) -> str:
    """A line on what differs; "" if nothing does."""
    damaged = "cannot be read ("  # what follows is a library's
    if damaged in expected.get("error", ""):
        expected, found = ({**each, "error": each.get("error", "").split(damaged)[0]} for each in (expected, found))
    different = [key for key in {*expected, *found} if expected.get(key) != found.get(key)]
    shown = (f"{key}: {str(expected.get(key))[:300]!r}, page {str(found.get(key))[:300]!r}" for key in different)
    return f"{name}: {'; '.join(shown)}" if different else ""


def main() -> int:
    script = pathlib.Path(__file__).with_suffix(".mjs").resolve()
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        folder = pathlib.Path(place)
        cases = make_cases(folder)
        texts, pictures = draw_texts(NUM_TEXTS), draw_pictures(NUM_PICTURES)
        told = [{key: value for key, value in each.items() if key != "expected"} for each in pictures]
        cases_of = {"tables": cases, "texts": texts, "pictures": told, "parts": PARTS}
        content = json.dumps(cases_of | {"places": [each[:2] for each in PLACES]})
        (folder / "cases.json").write_text(content, encoding="utf-8")
        (folder / "package.json").write_text('{"type": "module"}')
        for source in (path for each in MODULES for path in each.glob("*.js")):
            shutil.copy(source, folder)
        subprocess.run(["node", script, ".", "cases.json", "answers.json"], check=True)
        answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
        read = [read_by_python(case["name"], case["description"]) for case in cases]
    lines = [compare(case["name"], *both) for case, *both in zip(cases, read, answers["tables"], strict=True)]
    for (text, names), found in zip(texts, answers["texts"], strict=True):
        expected = describe_text(text, names)
        lines.append("" if found == expected else f"text {text!r}: {expected}, page {found}")
    lines += [check_parts(answers["parts"]), check_places(answers["places"])]
    lines.append(compare_pictures(pictures, answers["pictures"]))
    wrong = list(filter(None, lines))
    print(*wrong[:20], sep="\n", end="\n" * bool(wrong))
    num_read = sum("x" in each for each in read)
    counts = f"{num_read} read and {len(cases) - num_read} refused"
    print(f"{len(texts)} texts, {len(pictures)} pictures; {len(cases)} tables, of them {counts}; {len(wrong)} differ")
    return 1 if wrong or not 0.3 < num_read / len(cases) < 0.9 else 0


if __name__ == "__main__":
    sys.exit(main())
