"""A block of a log file whose rows are all as plain as most files' are, read at once instead of row by row.

Whatever is not plain, a quotation mark, a zone, a header, JSON, a day that does not exist, leaves its block to
:class:`wire.log_rows.RowReader`, which is the one that decides; a plain row it reads the same.
"""

import re
from typing import NamedTuple

import numpy as np

from wire.micros import micros
from wire.moment import EARLIEST, LATEST

_STAMP = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{3}(?:\d{3})?)?"
_ROW = re.compile(rf"^({_STAMP}),(\d{{1,9}})(?:,([^\s,\"]+))?\r?$", re.ASCII | re.MULTILINE)
_EARLIEST, _LATEST = micros(EARLIEST), micros(LATEST)


class PlainRow(NamedTuple):
    """A row of a log: its place among the lines, its time in microseconds, and its code."""

    place: int
    at_us: int
    code: int


def plain_rows(lines: list[str], serial: str | None) -> list[PlainRow] | None:
    """Return the rows of a machine, their times taken for UTC, or None if one of the lines is not plain."""
    found = _ROW.findall("".join(lines))
    if len(found) != len(lines):
        return None
    stamps, codes, serials = zip(*found, strict=True)
    try:
        times = np.array(stamps, dtype="datetime64[us]").astype(np.int64)
    except ValueError:
        return None
    if times.min() < _EARLIEST or times.max() >= _LATEST:
        return None
    rows = map(PlainRow, range(len(found)), times.tolist(), map(int, codes))
    return list(rows) if serial is None else [row for row, its in zip(rows, serials, strict=True) if its == serial]
