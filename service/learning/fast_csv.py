"""A block of a log file whose rows are all as plain as most files' are, read at once instead of row by row.

Whatever is not plain, a quotation mark, a zone, a header, JSON, a day that does not exist, leaves its block to
:class:`wire.log_rows.RowReader`, which is the one that decides; a plain row it reads the same, in every time zone.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wire.timestamps import EARLIEST, LATEST, from_us, to_us

_STAMP = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{3}(?:\d{3})?)?"
_ROW = re.compile(rf"^({_STAMP}),(\d{{1,9}})(?:,([^\s,\"]+))?\r?$", re.ASCII | re.MULTILINE)
_EARLIEST, _LATEST = to_us(EARLIEST), to_us(LATEST)
_HOUR_US = 3_600_000_000


class PlainRow(NamedTuple):
    """A row of a log: its place among the lines, its time in microseconds, and its code."""

    place: int
    at_us: int
    code: int


class PlainColumns(NamedTuple):
    """The rows of a block as columns; the serial of a row that names none is empty."""

    times: NDArray[np.int64]
    codes: tuple[str, ...]
    serials: tuple[str, ...]


def plain_rows(lines: list[str], serial: str | None, zone: tzinfo = UTC) -> list[PlainRow] | None:
    """Return the rows of a machine, or None if one of the lines is not plain."""
    columns = plain_columns(lines, zone)
    if columns is None:
        return None
    rows = map(PlainRow, range(len(lines)), columns.times.tolist(), map(int, columns.codes))
    if serial is None:
        return list(rows)
    return [row for row, its in zip(rows, columns.serials, strict=True) if its == serial]


def plain_columns(lines: list[str], zone: tzinfo = UTC) -> PlainColumns | None:
    """Return the rows of all serials, their times read in ``zone``, or None if one of the lines is not plain."""
    found = _ROW.findall("".join(lines))
    if len(found) != len(lines):
        return None
    stamps, codes, serials = zip(*found, strict=True)
    try:
        local = np.array(stamps, dtype="datetime64[us]").astype(np.int64)
    except ValueError:
        return None
    if local.min() < _EARLIEST - 24 * _HOUR_US or local.max() >= _LATEST + 24 * _HOUR_US:
        return None
    times = _in_utc(local, zone)
    if times is None or times.min() < _EARLIEST or times.max() >= _LATEST:
        return None
    return PlainColumns(times, codes, serials)


def _in_utc(local: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64] | None:
    """Return local times as UTC, or None if one lies in an hour in which the offset of its zone changes."""
    if zone is UTC or str(zone) == "UTC":
        return local
    hours, places = np.unique(local // _HOUR_US, return_inverse=True)
    offsets = [_offset_in(zone, hour) for hour in hours.tolist()]
    if None in offsets:
        return None
    return np.asarray(local - np.array(offsets, dtype=np.int64)[places])


@lru_cache(maxsize=100_000)
def _offset_in(zone: tzinfo, hour: int) -> int | None:
    """Return the offset of a zone in one hour of its local time, in microseconds; None if it is not one offset.

    A local time that occurs twice is the first of the two, and one that never occurs has the offset that was
    valid before the clocks were changed, as :class:`wire.log_rows.RowReader` reads them.
    """
    first = from_us(hour * _HOUR_US).replace(tzinfo=zone)
    last = first + timedelta(microseconds=_HOUR_US - 1)
    before, after = _offset(first), _offset(last)
    return before if before == after else None


def _offset(at: datetime) -> int:
    return (at.utcoffset() or timedelta(0)) // timedelta(microseconds=1)
