"""A growing log file, followed through rotation, copies and truncation, on from the very byte reached before."""

import logging
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import BinaryIO

from edge_agent.sources import Lost, SourceBatch
from edge_agent.sources.place import Place, located
from wire.alarm import Alarm
from wire.log_rows import RowReader, RowRejected
from wire.timestamps import from_us, to_us

BATCH = 500
_CHUNK_BYTES = 1 << 16
_MAX_LINE_BYTES = 1 << 16
_GRACE = 10  # polls until a place that cannot be found is given up: a file may be copied over at this moment
_ROTATED = re.compile(r"[.-]\d[\d.-]*")  # alarms.csv.1, alarms.csv-20261116; what is compressed is no longer ours

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Reading:
    """What is to be read next; ``moved`` if the place is not where it was, ``lost`` if rows may be missing."""

    path: Path
    offset: int
    moved: bool = False
    lost: bool = False


class Tail:
    """Follows one path. A line counts once its newline is there."""

    def __init__(self, path: Path, *, rows: RowReader, poll_seconds: float = 0.2) -> None:
        self._path, self._rows, self._poll = path, rows, poll_seconds
        self._missing_since: float | None = None
        self._was_at_end = float("-inf")  # when all that was there had been read
        self._last_us: int | None = None

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield new alarms for ever; a path that does not exist yet, or cannot be read now, is waited for."""
        place = Place.read(bookmark) if bookmark else None
        self._last_us = place.last_us if place else None
        while not stop.is_set():
            try:
                reading = self._next(place)
                file = reading.path.open("rb") if reading else None
            except OSError as error:  # a file may vanish between two looks at it
                log.debug("cannot read %s now: %s", self._path, error)
                reading = file = None
            if reading is not None and file is not None:
                with file:
                    if reading.moved and place is not None:
                        lost = self._lost(place) if reading.lost else None
                        place = Place.of(file, reading.offset, self._last_us)
                        yield SourceBatch([], place.write(), lost=lost)
                    file.seek(reading.offset)
                    for batch, reached in self._read_to_the_end(file, reading.offset):
                        place = reached
                        yield batch
                self._was_at_end = time.monotonic()
            stop.wait(self._poll)

    def _next(self, place: Place | None) -> _Reading | None:
        """Return the oldest file with something unread, from the bookmarked one on to the path itself."""
        family = self._rotated_files()
        if not family or (place is None and family[-1] != self._path):
            return None
        if place is None:
            return _Reading(self._path, 0)
        holder = located(place, family)
        if holder is not None:
            self._missing_since = None
            return self._unread(holder, place.offset, family)
        return self._after_a_loss(place, family)

    def _unread(self, holder: Path, offset: int, family: list[Path]) -> _Reading | None:
        if _has_line(holder, offset):
            return _Reading(holder, offset)
        later = family[family.index(holder) + 1 :]
        following = next((path for path in later if _has_line(path, 0)), None)
        if following is None:
            self._was_at_end = time.monotonic()
            return None
        return _Reading(following, 0)

    def _after_a_loss(self, place: Place, family: list[Path]) -> _Reading | None:
        """Return where to go on if the place is nowhere; after a while, and only if the log is there at all."""
        if family[-1] != self._path:
            return None
        now = time.monotonic()
        if self._missing_since is None:
            self._missing_since = now
        if now - self._missing_since < _GRACE * self._poll:
            return None
        for path in reversed(family):
            with path.open("rb") as file:
                offset = place.found_in(file)
            if offset is not None:
                log.info("older rows were removed from %s; reading goes on after the last one that was read", path)
                return _Reading(path, offset, moved=True)
        newer = [path for path in family if place.mtime_ns and path.stat().st_mtime_ns > place.mtime_ns]
        first, start = (newer or [self._path])[0], 0
        with first.open("rb") as file:
            if place.covers(file):
                start = os.fstat(file.fileno()).st_size
        is_lost = place.offset > 0 and self._missing_since - self._was_at_end > _GRACE * self._poll
        if not is_lost:
            log.warning("%s was cut; rows of the last moment before that may be missing", self._path)
        return _Reading(first, start, moved=True, lost=is_lost)

    def _lost(self, place: Place) -> Lost:
        since = from_us(place.last_us) if place.last_us is not None else None
        return Lost(
            f"{self._path.name} was cut or replaced while it was not read. What followed byte {place.offset} is "
            "neither in it nor in its rotated files, so alarms may be missing. Keep rotated files uncompressed "
            "until they are read.",
            since,
        )

    def _rotated_files(self) -> list[Path]:
        """Return the path and the files it was rotated to (a number or a date after its name), oldest first."""
        rotated = [
            (entry.stat().st_mtime_ns, Path(entry.path))
            for entry in os.scandir(self._path.parent)
            if _ROTATED.fullmatch(entry.name.removeprefix(self._path.name)) and entry.name != self._path.name
            if entry.name.startswith(self._path.name) and entry.is_file()
        ]
        current = [self._path] if self._path.is_file() else []
        return [path for _, path in sorted(rotated)] + current

    def _read_to_the_end(self, file: BinaryIO, offset: int) -> Iterator[tuple[SourceBatch, Place]]:
        alarms: list[Alarm] = []
        skipped: list[str] = []
        unread = offset
        for line in _complete_lines(file):
            text = line.decode("utf-8", errors="replace")
            try:
                alarm = self._rows.read(text)
                if alarm is not None:
                    alarms.append(alarm)
            except RowRejected as error:
                skipped.append(f"byte {unread}: {error}; the row begins with {text.strip()[:60]!r}")
            unread += len(line)
            if len(alarms) >= BATCH or len(skipped) >= BATCH:
                yield self._batch(file, unread, alarms, skipped)
                alarms, skipped = [], []
        if unread > offset:
            yield self._batch(file, unread, alarms, skipped)

    def _batch(
        self, file: BinaryIO, offset: int, alarms: list[Alarm], skipped: list[str]
    ) -> tuple[SourceBatch, Place]:
        if alarms:
            self._last_us = to_us(alarms[-1].at)
        place = Place.of(file, offset, self._last_us)
        return SourceBatch(alarms, place.write(), skipped), place


def _complete_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines that end in a newline; an endless line without one is given up in pieces."""
    rest = b""
    while chunk := file.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
        if len(rest) > _MAX_LINE_BYTES:
            yield rest
            rest = b""


def _has_line(path: Path, offset: int) -> bool:
    with path.open("rb") as file:
        file.seek(offset)
        return any(True for _ in _complete_lines(file))
