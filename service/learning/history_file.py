"""Read a log file of alarms: gzipped or not, in blocks of lines, and fast where its rows are plain.

A block is plain if all of its rows have the simple form ``timestamp,code[,serial]``. It is then parsed at
once. Any other block (quotes, time zones, a header, JSON, a day that does not exist) is left to
:class:`wire.log_rows.RowReader`, which reads a plain row in the same way, in every time zone. So are all blocks
of a file with other columns.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO, Final, NamedTuple, cast
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from service.errors import InputRejected
from wire.columns import ColumnOptions
from wire.timestamps import EARLIEST, LATEST, from_us, to_us

_BLOCK_LINES: Final = 1_000  # one line that is not plain makes the whole block be read line by line
_BLOCK_BYTES: Final = 1 << 20  # a block ends here even with fewer lines; decoded, it may take four times as much
_GZIP: Final = b"\x1f\x8b"
_CHUNK_BYTES: Final = 1 << 20
_MAX_LINE_BYTES: Final = 1 << 20
_MAX_UNPACKED_BYTES: Final = 20_000_000_000
_HISTORY: Final = UUID("6f0f5a0e-3f0b-4a57-9d1c-6a2f0a4c7d11")  # namespace of the epochs of history files
_STAMP = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{3}(?:\d{3})?)?"
_ROW = re.compile(rf"^({_STAMP}),(\d{{1,9}})(?:,([^\s,\"]+))?\r?$", re.ASCII | re.MULTILINE)
_EARLIEST, _LATEST = to_us(EARLIEST), to_us(LATEST)
_HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class ImportFile:
    """A file of alarms: whose rows to take from it, and the zone of timestamps that name none.

    Without ``columns`` its rows are ``timestamp,alarm,serial`` or JSON. ``code_map`` has numbers of named alarms.
    """

    path: Path
    serial: str | None = None
    zone: tzinfo = UTC
    name: str | None = None
    columns: ColumnOptions | None = None
    code_map: Mapping[str, int] = field(default_factory=dict)

    @property
    def encoding(self) -> str:
        """How its text is written."""
        return "utf-8" if self.columns is None else self.columns.encoding

    @property
    def title(self) -> str:
        """What people call it; an uploaded file has another name here."""
        return self.name or str(self.path)


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


def scan(log: ImportFile) -> tuple[UUID, int]:
    """Return the epoch of a history file, the same rows, packed or not, the same epoch, and how many lines it has.

    Reads all of it, so that a file that breaks off, or unpacks to nonsense, is refused before a row is stored.
    """
    digest, size, line, lines = sha256(), 0, 0, 0
    for chunk in _chunks(log):
        digest.update(chunk)
        size += len(chunk)
        lines += chunk.count(b"\n")
        line = len(chunk) - chunk.rfind(b"\n") - 1 if b"\n" in chunk else line + len(chunk)
        if size > _MAX_UNPACKED_BYTES or line > _MAX_LINE_BYTES:
            raise InputRejected(f"{log.title} is no log of alarms: it has a line or a size beyond all measure.")
    return uuid5(_HISTORY, digest.hexdigest()), lines + (line > 0)


def _chunks(log: ImportFile) -> Iterator[bytes]:
    with _opened(log) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def first_bytes(log: ImportFile) -> bytes:
    """Return the beginning of a file, unpacked."""
    return next(_chunks(log), b"")


def blocks(log: ImportFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a file, some at a time, with the number of the first of them; a header stands alone."""
    with _opened(log) as file:
        number = most = 1
        while lines := [line.decode(log.encoding, errors="replace") for line in _some_lines(file, most)]:
            yield number, lines
            number, most = number + len(lines), _BLOCK_LINES


def _some_lines(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield the next lines, so many at most, and no more once they have the bytes of a block."""
    size = 0
    for line in islice(file, most):
        yield line
        size += len(line)
        if size >= _BLOCK_BYTES:
            return


@contextmanager
def _opened(log: ImportFile) -> Iterator[IO[bytes]]:
    try:
        with log.path.open("rb") as file:
            if file.read(2) != _GZIP:
                file.seek(0)
                yield file
                return
            file.seek(0)
            with gzip.open(file, "rb") as unpacked:
                yield cast("IO[bytes]", unpacked)
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputRejected(f"Cannot read {log.title}: {why}. Nothing was stored; give a whole file.") from None
