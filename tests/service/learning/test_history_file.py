"""Plain rows: read at once as they are one by one, or left to whoever reads them one by one."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.learning.history_file import plain_rows
from wire.log_rows import RowReader, RowRejected
from wire.timestamps import to_us

PLAIN = "2026-10-17 14:29:00.685,139,1\n"
STAMPS = st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31)).map(  # noqa: DTZ001 - a log names no zone
    lambda at: at.isoformat(sep=" ", timespec="milliseconds" if at.microsecond % 1000 == 0 else "microseconds")
)
ROWS = st.tuples(STAMPS, st.integers(0, 10**9 - 1), st.sampled_from(["1", "2", "x-7"])).map(
    lambda row: f"{row[0]},{row[1]},{row[2]}\n"
)
WEIRD = st.text(st.sampled_from('0123456789-:. T,Zz+"\t\ufeff{}\r'), max_size=40).map(lambda text: text + "\n")


ZONES = [
    ZoneInfo(name) for name in ("UTC", "Europe/Rome", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata")
]
# Days around changes of the clocks: local times that occur twice, never, and change by half an hour.
DAYS = ("2026-10-25", "2026-03-29", "2026-04-05", "2009-11-01", "2026-10-04")
CHANGES = st.sampled_from([datetime.fromisoformat(day) for day in DAYS])
NEAR_CHANGES = st.tuples(CHANGES, st.integers(0, 5 * 3600)).map(
    lambda one: f"{(one[0] + timedelta(seconds=one[1])).isoformat(sep=' ')},139,1\n"
)


def one_by_one(lines: list[str], serial: str | None, zone: tzinfo = UTC) -> list[tuple[int, int, int]]:
    reader = RowReader(serial, zone)
    alarms = [reader.read(line) for line in lines]
    return [(place, to_us(one.at), one.code) for place, one in enumerate(alarms) if one is not None]


@given(lines=st.lists(ROWS, min_size=1, max_size=20), serial=st.sampled_from([None, "1", "9"]))
def test_plain_rows_are_read_as_they_are_one_by_one(lines: list[str], serial: str | None) -> None:
    assert plain_rows(lines, serial) == one_by_one(lines, serial)


@given(
    lines=st.lists(st.one_of(ROWS, NEAR_CHANGES), min_size=1, max_size=20),
    serial=st.sampled_from([None, "1"]),
    zone=st.sampled_from(ZONES),
)
def test_plain_rows_are_read_in_every_zone_as_the_agents_reader_reads_them(
    lines: list[str], serial: str | None, zone: ZoneInfo
) -> None:
    found = plain_rows(lines, serial, zone)
    try:
        expected = one_by_one(lines, serial, zone)
    except RowRejected:  # the first hours of 2000 in the east lie in 1999
        expected = None
    assert found is None or found == expected


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2026-10-25 01:59:59", "2026-10-24T23:59:59+00:00"),
        ("2026-10-25 02:30:00", "2026-10-25T00:30:00+00:00"),  # occurs twice: the first of the two
        ("2026-10-25 03:00:00", "2026-10-25T02:00:00+00:00"),
        ("2026-03-29 02:30:00", "2026-03-29T01:30:00+00:00"),  # never occurs: the offset from before
        ("2026-03-29 03:00:00", "2026-03-29T01:00:00+00:00"),
    ],
)
def test_local_times_around_a_change_of_the_clocks_are_read_at_once_too(local: str, utc: str) -> None:
    at = to_us(datetime.fromisoformat(utc))
    assert plain_rows([f"{local},5,1\n"], None, ZoneInfo("Europe/Rome")) == [(0, at, 5)]
    assert one_by_one([f"{local},5,1\n"], None, ZoneInfo("Europe/Rome")) == [(0, at, 5)]


@given(lines=st.lists(st.one_of(ROWS, WEIRD), min_size=1, max_size=5))
def test_what_cannot_be_read_one_by_one_is_not_plain(lines: list[str]) -> None:
    found = plain_rows(lines, None)
    try:
        expected = one_by_one(lines, None)
    except RowRejected:
        assert found is None
    else:
        assert found is None or found == expected


@pytest.mark.parametrize(
    "line",
    [
        "timestamp,alarm,serial\n",
        "2026-02-30 00:00:00,1,1\n",
        "2026-10-17 24:00:00,1,1\n",
        "2026-10-17 23:59:60,1,1\n",
        "1999-12-31 23:59:59,1,1\n",
        "2100-01-01 00:00:00,1,1\n",
        "2026-10-17T14:29:00Z,1,1\n",
        "2026-10-17T14:29:00+02:00,1,1\n",
        '"2026-10-17 14:29:00",1,1\n',
        "2026-10-17 14:29:00,9999999999,1\n",
        '{"timestamp": "2026-10-17 14:29:00", "alarm": 1}\n',
        "\n",
        "\u0662\u0660\u0662\u0666-10-17 14:29:00,1,1\n",
    ],
)
def test_one_row_that_is_not_plain_leaves_its_block_to_the_reader(line: str) -> None:
    assert plain_rows([PLAIN, line, PLAIN], None) is None


def test_rows_end_as_files_of_both_worlds_do_and_the_last_may_have_no_end() -> None:
    at = to_us(datetime.fromisoformat("2026-10-17T14:29:00.685+00:00"))
    lines = [PLAIN, PLAIN.replace("\n", "\r\n"), PLAIN.rstrip("\n")]
    assert plain_rows(lines, "1") == [(0, at, 139), (1, at, 139), (2, at, 139)]
