"""Devices, drawn or from a CSV file: values, who has which, windows by hand, and every mistake in one line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import assert_refused

from datasets.device_table import PHONES, draw_device_profiles, load_device_profiles, parse_windows
from datasets.federated_data import DAY_S

HEADER = "examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s"
ENERGY = "joules_per_example,joules_per_byte_down,joules_per_byte_up"
# (downlink Mbit/s, uplink Mbit/s, mW per Mbit/s down, mW per Mbit/s up, mW), the power model of Huang et al. 2012.
RADIOS = {
    "Wi-Fi": (32, 16, 137.01, 283.17, 132.86),
    "LTE": (13, 6, 51.97, 438.39, 1288.04),
    "3G": (2, 1, 122.12, 868.98, 817.88),
}
WATTS = {"new": 4.5, "middling": 3.0, "old": 2.0}


@pytest.fixture
def write(tmp_path):
    def write_lines(*lines, encoding="utf-8"):
        path = tmp_path / "devices.csv"
        path.write_text("\n".join(lines) + "\n", encoding=encoding)
        return str(path)

    return write_lines


def test_a_row_a_client(write):
    path = write(
        "# two devices",
        f"device,client,{HEADER},{ENERGY},available_h,availability,resource",
        "slow,1,10,200,100,0.5,0.001,0.002,22-7,0.5,0.25",
        "",
        "fast,0,1e2,4000,2000,0.25,0,0.01,,1,1",
    )
    profiles = load_device_profiles(path, 2, seed=3)
    assert profiles.names == ("fast", "slow")
    assert profiles.examples_per_s.tolist() == [100, 10]
    assert profiles.downlink_bytes_per_s.tolist() == [4000, 200]
    assert profiles.uplink_bytes_per_s.tolist() == [2000, 100]
    assert profiles.availability.tolist() == [1, 0.5] and profiles.resources.tolist() == [1, 0.25]
    assert [rates.tolist() for rates in profiles.energy] == [[0.25, 0.5], [0, 0.001], [0.01, 0.002]]
    assert profiles.windows.starts_s.tolist() == [[0], [22 * 3600]]
    assert profiles.windows.lengths_s.tolist() == [[DAY_S], [9 * 3600]]
    assert len(profiles.digest) == 64
    assert load_device_profiles(path, 1, seed=3).names == ("fast",)  # further clients are passed over


def test_least_columns(write):
    profiles = load_device_profiles(write(HEADER, "50,1,1", "200,1,1", encoding="utf-8-sig"), 40, seed=0)
    assert profiles.energy is None and profiles.windows is None and set(profiles.availability) == {1.0}
    # Without a column of resources: the speed as a share of the fastest.
    np.testing.assert_array_equal(profiles.resources, profiles.examples_per_s / 200)
    assert set(profiles.names) == {"device of line 2", "device of line 3"}


def test_rows_are_drawn_by_their_shares_from_seed_and_index_alone(write):
    path = write(f"share,{HEADER}", "6,1,1,1", "3,2,1,1", "1,3,1,1")
    many = load_device_profiles(path, 20_000, seed=1).examples_per_s
    shares = np.bincount(many.astype(int))[1:] / len(many)
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.015)  # four deviations
    np.testing.assert_array_equal(load_device_profiles(path, 50, seed=1).examples_per_s, many[:50])
    assert not np.array_equal(load_device_profiles(path, 50, seed=2).examples_per_s, many[:50])


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("", [(0, 24)]),
        ("0-24", [(0, 24)]),
        ("9-17", [(9, 8)]),
        ("22-7", [(22, 9)]),
        ("12-13;22-6.5", [(12, 1), (22, 8.5)]),
        ("22-24; 0-7", [(22, 9)]),
        ("1-3;2-5;5-6", [(1, 5)]),
        ("20-4;3-21", [(0, 24)]),
        ("7-0", [(7, 17)]),
    ],
)
def test_windows_by_hand(text, hours):
    assert parse_windows(text) == [(start * 3600, length * 3600) for start, length in hours]


WINDOW = st.tuples(st.integers(0, 48), st.integers(0, 48)).filter(lambda each: each[0] != each[1])


@given(st.lists(WINDOW, min_size=1, max_size=5))
def test_windows_cover_exactly_the_hours_that_they_name(halves):
    """Quarters of hours as the text has them, and as the disjoint windows have them."""
    merged = parse_windows(";".join(f"{start / 2}-{end / 2}" for start, end in halves))
    middles = np.arange(0.25, 48) * 1800
    covered = np.sum([np.mod(middles - start, DAY_S) < length for start, length in merged], axis=0)
    named = [
        any(start <= half < end if start < end else half >= start or half < end for start, end in halves)
        for half in np.arange(48)
    ]
    assert covered.tolist() == [int(each) for each in named]
    assert all(0 <= start < DAY_S and 0 < length <= DAY_S for start, length in merged)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([HEADER, "1,2,3", "1,-2,3"], "line 3, downlink_bytes_per_s=-2: expected a number above 0"),
        ([HEADER, "0,2,3"], "line 2, examples_per_s=0: expected a number above 0"),
        ([HEADER, "nan,2,3"], "line 2, examples_per_s=nan: expected a number above 0"),
        ([HEADER, "inf,2,3"], "line 2, examples_per_s=inf: expected a number above 0"),
        ([HEADER, "1e999,2,3"], "line 2, examples_per_s=1e999: expected a number above 0"),
        ([HEADER, "1_0,2,3"], "line 2, examples_per_s=1_0: expected a number above 0"),
        ([HEADER, ",2,3"], "line 2, examples_per_s=: expected a number above 0"),
        ([HEADER, "1,2"], "line 2 has 2 cells; expected 3, as in the header"),
        ([f"{HEADER},{ENERGY}", "1,2,3,-0.1,0,0"], "line 2, joules_per_example=-0.1: expected a number of at least 0"),
        ([f"{HEADER},joules_per_example", "1,2,3,4"], "no column joules_per_byte_down; expected joules_per_example, "
            "joules_per_byte_down, joules_per_byte_up, or none of them"),
        (["examples_per_s,uplink_bytes_per_s", "1,2"], f"no column downlink_bytes_per_s; expected {HEADER}".replace(
            ",", ", ")),
        ([f"{HEADER},joules_per_exampl", "1,2,3,4"], "unknown column joules_per_exampl; "
            "did you mean joules_per_example?"),
        ([f"{HEADER},colour", "1,2,3,4"], "unknown column colour; expected examples_per_s, downlink_bytes_per_s"),
        ([HEADER.replace(",", ";"), "1;2;3"], "unknown column examples_per_s;downlink_bytes_per_s"),
        ([f"{HEADER},share,share", "1,2,3,4,5"], "the column share stands there twice; expected it once"),
        ([f"{HEADER},share,client", "1,2,3,4,5"], "the columns share and client; expected one of them"),
        ([f"{HEADER},availability", "1,2,3,1.5"], "line 2, availability=1.5: expected a number above 0 and at most 1"),
        ([f"{HEADER},resource", "1,2,3,0"], "line 2, resource=0: expected a number above 0 and at most 1"),
        ([f"{HEADER},client", "1,2,3,0.5"], "line 2, client=0.5: expected a whole number from 0"),
        ([f"{HEADER},client", "1,2,3,0", "1,2,3,2"], "no row for client 1; expected one for each of 0 to 2"),
        ([f"{HEADER},client", "1,2,3,0", "1,2,3,0"], "line 3, client=0: a second row for it; expected one a client"),
        ([f"{HEADER},available_h", "1,2,3,22"], "line 2, available_h=22: expected hours of the day such as 22-7"),
        ([f"{HEADER},available_h", "1,2,3,22-25"], "line 2, available_h=22-25: expected hours of the day"),
        ([f"{HEADER},available_h", "1,2,3,9-9"], "line 2, available_h=9-9: a window that never opens; expected two"),
        ([HEADER], "no row; expected a header and a row for each kind of device"),
        (["# nothing"], "no column examples_per_s"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_with_the_place_and_what_is_expected(write, lines, expected):
    path = write(*lines)
    caught = assert_refused("", load_device_profiles, path, 3, seed=0)
    assert caught.startswith(f"device_profiles={path}: {expected}")


def test_a_file_that_cannot_be_read(tmp_path):
    assert_refused(
        r"No such file.*; expected a CSV file, or phones", load_device_profiles, str(tmp_path / "none.csv"), 3, seed=0
    )
    (tmp_path / "image.csv").write_bytes(b"\xff\xfe\x00\x01")
    assert_refused("in UTF-8", load_device_profiles, str(tmp_path / "image.csv"), 3, seed=0)


def test_the_sample_phones_follow_from_the_sources_that_the_file_names():
    profiles = load_device_profiles(PHONES, 1000, seed=0)
    kinds = {name: index for index, name in enumerate(profiles.names)}
    assert len(kinds) == 6
    for name, client in kinds.items():
        phone, radio = name.split(" phone on ")
        down, up, mw_down, mw_up, mw = RADIOS[radio]
        rates = [profiles.downlink_bytes_per_s[client], profiles.uplink_bytes_per_s[client]]
        assert rates == [down * 125_000, up * 125_000]
        joules = [rate[client] for rate in profiles.energy]
        # Power at this rate, divided by bytes a second; the file has three digits.
        expected = [(mw_down * down + mw) / 1000 / rates[0], (mw_up * up + mw) / 1000 / rates[1]]
        assert joules[1:] == pytest.approx(expected, rel=5e-3)
        assert joules[0] == pytest.approx(WATTS[phone] / profiles.examples_per_s[client], rel=5e-3)
    assert profiles.windows is not None  # at hour 0 all can be reached, so that a short run has everybody
    assert (np.mod(-profiles.windows.starts_s, DAY_S) < profiles.windows.lengths_s).any(axis=1).all()


def test_a_clients_device_does_not_depend_on_how_many_there_are():
    few, many = draw_device_profiles(5, seed=1), draw_device_profiles(50, seed=1)
    np.testing.assert_array_equal(few.examples_per_s, many.examples_per_s[:5])
    np.testing.assert_array_equal(few.uplink_bytes_per_s, many.uplink_bytes_per_s[:5])
    assert not np.array_equal(few.examples_per_s, draw_device_profiles(5, seed=2).examples_per_s)


def test_distributions_are_as_documented():
    profiles = draw_device_profiles(20_000, seed=0)
    for values, median, sigma in (
        (profiles.examples_per_s, 500, 0.6),
        (profiles.downlink_bytes_per_s, 4e6, 0.8),
        (profiles.uplink_bytes_per_s, 1e6, 0.8),
    ):
        assert np.log(values).mean() == pytest.approx(np.log(median), abs=0.03)
        assert np.log(values).std() == pytest.approx(sigma, abs=0.02)
    np.testing.assert_allclose(profiles.downlink_bytes_per_s, 4 * profiles.uplink_bytes_per_s)
    assert abs(np.corrcoef(np.log(profiles.examples_per_s), np.log(profiles.uplink_bytes_per_s))[0, 1]) < 0.03
    assert set(profiles.availability) == {1.0}
