"""A growing log file, followed through rotation and truncation, on from the very byte reached before."""

import hashlib
import json
import os
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

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[Batch]:
        """Yield new alarms for ever; a path that does not exist yet is waited for."""
        place = _Place(**json.loads(bookmark)) if bookmark else None
        while not stop.is_set():
            path = self._file_to_read(place)
            if path is None:
                stop.wait(self._poll)
                continue
            with path.open("rb") as file:
                start = place.offset if place and _same_file(file, place) else 0
                file.seek(start)
                for batch, reached in self._read_to_the_end(file, start):
                    place = reached
                    yield batch
            stop.wait(self._poll)

    def _file_to_read(self, place: _Place | None) -> Path | None:
        """Return the rotated file while it has unread lines, else the path itself if it is there."""
        try:
            current = self._path.stat()
        except OSError:
            current = None
        if place and (current is None or current.st_ino != place.inode):
            rotated = self._rotated(place)
            if rotated is not None:
                return rotated
        return self._path if current else None

    def _rotated(self, place: _Place) -> Path | None:
        try:
            siblings = [entry for entry in os.scandir(self._path.parent) if entry.inode() == place.inode]
        except OSError:
            return None
        for entry in siblings:
            with Path(entry.path).open("rb") as file:
                if (
                    _same_file(file, place)
                    and entry.stat().st_size > place.offset
                    and _has_line(file, place.offset)
                ):
                    return Path(entry.path)
        return None

    def _read_to_the_end(self, file: BinaryIO, offset: int) -> Iterator[tuple[Batch, _Place]]:
        inode = os.fstat(file.fileno()).st_ino
        alarms: list[Alarm] = []
        skipped: list[str] = []
        unread = offset
        for line in _whole_lines(file):
            try:
                alarm = self._rows.read(line.decode("utf-8", errors="replace"))
                if alarm is not None:
                    alarms.append(alarm)
            except RowRejected as error:
                skipped.append(f"byte {unread}: {error}")
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


def _has_line(file: BinaryIO, offset: int) -> bool:
    file.seek(offset)
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
