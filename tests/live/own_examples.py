"""People bring their own examples in pages of live runs: `.venv/bin/python tests/live/own_examples.py [<pictures>]`.

In $BROWSER, one page draws digits and one gives a folder of pictures, in a run on digits; a third gives a table. Each
run goes to its end, and what the pages said of the examples must be what the server was told of them. `make test-web`
calls it for each browser.
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import PIL.Image
import sklearn.datasets

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS, LIMIT_S, NUM_DRAWN, NUM_PICTURES, NUM_ROWS = 3, 240.0, 16, 30, 40
FLAGS = ("--algo=fedavg", "--own_data", f"--rounds={ROUNDS}", "--port=0", "--noqr")
HEADER = ["age", "weight", "city", "ill"]
REMARK = "=cmd|' /C calc'!A0"  # which a spreadsheet would run


def draw_people(num: int, seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    people = [(rng.randint(20, 80), rng.uniform(50, 110), rng.choice(["Rome", "Oslo", "Lima"])) for _ in range(num)]
    return [[str(age), f"{weight:.1f}", city, "yes" if age + weight / 4 > 70 else "no"] for age, weight, city in people]


def write_tables(folder: pathlib.Path) -> None:
    """The organiser's sample; a person's table of another dialect, with an odd city; and one with a class misspelt."""
    rows = [HEADER, *draw_people(200, 0)]
    (folder / "sample.csv").write_text("".join(f"{','.join(row)}\n" for row in rows), encoding="utf-8")
    mine = [[ill, weight.replace(".", ","), REMARK, age, city] for age, weight, city, ill in draw_people(NUM_ROWS, 1)]
    mine[6][4] = "Bern"
    for name, ill in (("mine.csv", mine[3][0]), ("wrong.csv", "yess")):
        mine[3][0] = ill
        lines = [["ill", "weight", "remark", "age", "city"], *mine]
        (folder / name).write_text("".join(f"{';'.join(row)}\r\n" for row in lines), encoding="utf-8-sig")


def write_pictures(folder: pathlib.Path) -> None:
    """Digits as dark ink on light paper, in folders by class; beside them what is none of the run's."""
    digits = sklearn.datasets.load_digits()
    for place in range(NUM_PICTURES):
        pixels = 255 - (digits.images[place] * 255 / 16).astype(np.uint8)
        path = folder / str(digits.target[place]) / f"{place}.{'jpg' if place % 2 else 'png'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels).resize((120, 90)).save(path)
    (folder / "cats").mkdir()
    PIL.Image.new("RGB", (9, 9)).save(folder / "cats" / "tom.png")
    (folder / "3" / "notes.txt").write_text("no picture")
    (folder / "3" / ".hidden").write_text("")


def take_part(folder: pathlib.Path, name: str, flags: list[str], steps: list[dict], shots: str) -> list[dict]:
    """Serves a run and opens a page for each step; what each of them saw, and the seat that it had, as `seat`."""
    log, run = folder / f"{name}.log", folder / name
    command = [ROOT / ".venv/bin/python", "-m", "launch.serve", *FLAGS, f"--start_with={len(steps)}", *flags]
    with log.open("w") as file:
        server = subprocess.Popen([*command, f"--run_dir={run}"], cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
    try:
        links = wait_for_links(log, server)
        told = [{"link": link, **step} for link, step in zip(links, steps, strict=True)]
        (folder / "steps.json").write_text(json.dumps(told))
        drive = ["node", ROOT / "tests/live/own_examples.mjs", folder / "steps.json", *([shots] if shots else [])]
        lines = subprocess.run(drive, cwd=ROOT, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
        assert server.wait(LIMIT_S) == 0, log.read_text()
    except BaseException as error:
        print(log.read_text()[-3000:], getattr(error, "stderr", ""), file=sys.stderr)
        raise
    finally:
        server.kill()
        server.wait()
    seats = json.loads((run / "roster.json").read_text())["seats"]
    seen = sorted(map(json.loads, lines.splitlines()), key=lambda each: each["place"])
    assert len(seen) == len(steps)
    return [each | {"seat": seats[place]} for place, each in enumerate(seen)]


def wait_for_links(log: pathlib.Path, server: subprocess.Popen) -> list[str]:
    """A link for each client, as the server has printed them."""
    end = time.monotonic() + LIMIT_S
    while "\npage " not in (text := log.read_text()):
        assert server.poll() is None and time.monotonic() < end, text
        time.sleep(0.2)
    return re.findall(r"(?m)^(?:link)? +(http\S+)$", text)


def check(seen: dict, num: int) -> None:
    """What all ways have in common."""
    assert seen["problems"] == [] and seen["overflow"] == [], seen
    assert seen["before"], "taking part is offered before there are examples"
    held_out = num // 5
    assert (seen["seat"]["num_train"], seen["seat"]["num_test"]) == (num - held_out, held_out), seen
    assert sum(map(int, seen["counts"])) == num, seen
    assert seen["problem"] == f"{num - held_out} examples to train on; {held_out} more are held out for tests.", seen
    assert f"trained in {ROUNDS} rounds" in seen["end"], seen


def main() -> None:
    shots = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        write_tables(folder)
        write_pictures(folder / "pictures")
        steps = [{"draw": NUM_DRAWN}, {"pictures": str(folder / "pictures")}]
        drawn, given = take_part(folder, "digits", ["--dataset=digits", "--model=perceptron"], steps, shots)
        step = {"table": str(folder / "mine.csv"), "refused": str(folder / "wrong.csv")}
        flags = [f"--data={folder / 'sample.csv'}", "--label_column=ill"]
        [table] = take_part(folder, "table", flags, [step], shots and f"{shots}/table")
    check(drawn, NUM_DRAWN)
    assert drawn["asked"] == [str(i % 10) for i in range(NUM_DRAWN - 1)], drawn
    assert (drawn["drawn"], drawn["afterDeleting"], drawn["focused"]) == (NUM_DRAWN, NUM_DRAWN - 1, "picture"), drawn
    check(given, NUM_PICTURES)
    assert given["isTurned"] and len(given["notes"]) == 3, given
    assert any("the run has no class 'cats'" in line for line in given["notes"]), given
    assert any("notes.txt" in line for line in given["notes"]), given
    check(table, NUM_ROWS)
    assert table["refused"].startswith("wrong.csv, line 5: label column 'ill' has 'yess'") and table["afterRefusal"]
    assert table["refused"].endswith("did you mean yes?"), table
    assert table["leftOut"] == ["remark left out"] and table["preview"][2] == REMARK, table
    assert any("line 8: column 'city' has 'Bern', which the run does not know" in line for line in table["notes"]), (
        table
    )
    print("people brought drawings, pictures and a table in pages, and all rounds were trained on them")


if __name__ == "__main__":
    main()
