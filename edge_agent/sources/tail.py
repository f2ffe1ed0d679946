"""A growing log file, followed through rotation and truncation, on from the very byte reached before."""

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import BinaryIO

from edge_agent.sources import Batch
from wire.alarm import Alarm
from wire.log_rows import RowReader, RowRejected

BATCH = 500
_CHUNK = 1 << 16
_HEAD = 256
_LONGEST_LINE = 1 << 16
_ROTATED = re.compile(r"[.-]\d[\d.-]*")  # alarms.csv.1, alarms.csv-20261116; what is compressed is no longer ours

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Place:
    """Where reading stands: which file, how far, and how that file began.

    The inode finds a file that was renamed; the digest of its first bytes tells a file that was truncated and
    has grown past the old place from one that was only appended to.
    """

    inode: int
    offset: int
    head_bytes: int
    head_digest: str


class Tail:
    """Follows one path. A line counts once its newline is there."""

    def __init__(self, path: Path, *, rows: RowReader, poll_seconds: float = 0.2) -> None:
        self._path, self._rows, self._poll = path, rows, poll_seconds
        self._lost: int | None = None

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[Batch]:
        """Yield new alarms for ever; a path that does not exist yet, or cannot be read now, is waited for."""
        place = _Place(**json.loads(bookmark)) if bookmark else None
        while not stop.is_set():
            try:
                path = self._file_to_read(place)
                file = path.open("rb") if path else None
            except OSError as error:  # a file may vanish between two looks at it
                log.debug("cannot read %s now: %s", self._path, error)
                file = None
            if file is not None:
                with file:
                    start = place.offset if place and _same_file(file, place) else 0
                    file.seek(start)
                    for batch, reached in self._read_to_the_end(file, start):
                        place = reached
                        yield batch
            stop.wait(self._poll)

    def _file_to_read(self, place: _Place | None) -> Path | None:
        """Return the oldest file with something unread, from the bookmarked one on to the path itself."""
        family = self._family()
        if not family:
            return None
        if place is None:
            return family[-1] if family[-1] == self._path else None
        known = [path for path in family if path.stat().st_ino == place.inode]
        if not known:
            if self._lost != place.inode:
                log.error("the file that was read before is gone; what %s held since may be missing", self._path)
                self._lost = place.inode
            return self._path if family[-1] == self._path else None
        later = family[family.index(known[0]) :]
        return next((path for path in later if _has_unread_line(path, place)), None)

    def _family(self) -> list[Path]:
        """Return the path and the files it was rotated to (a number or a date after its name), oldest first."""
        rotated = [
            (entry.stat().st_mtime_ns, Path(entry.path))
            for entry in os.scandir(self._path.parent)
            if _ROTATED.fullmatch(entry.name.removeprefix(self._path.name)) and entry.name != self._path.name
            if entry.name.startswith(self._path.name) and entry.is_file()
        ]
        current = [self._path] if self._path.is_file() else []
        return [path for _, path in sorted(rotated)] + current

    def _read_to_the_end(self, file: BinaryIO, offset: int) -> Iterator[tuple[Batch, _Place]]:
        inode = os.fstat(file.fileno()).st_ino
        alarms: list[Alarm] = []
        skipped: list[str] = []
        unread = offset
        for line in _whole_lines(file):
            text = line.decode("utf-8", errors="replace")
            try:
                alarm = self._rows.read(text)
                if alarm is not None:
                    alarms.append(alarm)
            except RowRejected as error:
                skipped.append(f"byte {unread}: {error}; the row begins with {text.strip()[:60]!r}")
            unread += len(line)
            if len(alarms) >= BATCH or len(skipped) >= BATCH:
                yield _batch(file, inode, unread, alarms, skipped)
                alarms, skipped = [], []
        if unread > offset:
            yield _batch(file, inode, unread, alarms, skipped)


def _batch(
    file: BinaryIO, inode: int, offset: int, alarms: list[Alarm], skipped: list[str]
) -> tuple[Batch, _Place]:
    head_bytes = min(offset, _HEAD)
    place = _Place(inode, offset, head_bytes, _head_digest(file, head_bytes))
    return Batch(alarms, json.dumps(asdict(place)), skipped), place


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines that end in a newline; an endless line without one is given up in pieces."""
    rest = b""
    while chunk := file.read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
        if len(rest) > _LONGEST_LINE:
            yield rest
            rest = b""


def _has_unread_line(path: Path, place: _Place) -> bool:
    with path.open("rb") as file:
        file.seek(place.offset if _same_file(file, place) else 0)
        return any(True for _ in _whole_lines(file))


def _same_file(file: BinaryIO, place: _Place) -> bool:
    stat = os.fstat(file.fileno())
    return (
        stat.st_ino == place.inode
        and stat.st_size >= place.offset
        and _head_digest(file, place.head_bytes) == place.head_digest
    )


def _head_digest(file: BinaryIO, size: int) -> str:
    head = os.pread(file.fileno(), size, 0)
    return hashlib.sha256(head).hexdigest()[:16]
