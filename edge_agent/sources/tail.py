"""Follow a growing log file through rotation, copies and truncation, from the last byte read."""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import BinaryIO

from edge_agent.sources import Lost, Record, Rows, SourceBatch
from edge_agent.sources.file_position import FilePosition, find_file
from wire.log_rows import RowRejected
from wire.timestamps import from_us, to_us

BATCH = 500
_CHUNK_BYTES = 1 << 16
_MAX_LINE_BYTES = 1 << 16
_GRACE_POLLS = 10  # before a position counts as lost: the file may be being copied
_ROTATED = re.compile(r"[.-]\d[\d.-]*")  # alarms.csv.1, alarms.csv-20261116; compressed files are ignored

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Reading:
    """What to read next; ``moved`` if the position has changed, ``lost`` if rows may be missing."""

    path: Path
    offset: int
    moved: bool = False
    lost: bool = False


class Tail:
    """Follows one path. A line counts once its newline is there."""

    def __init__(
        self,
        path: Path,
        *,
        rows: Rows,
        poll_seconds: float = 0.2,
        encoding: str = "utf-8",
        start_file: Callable[[str], None] | None = None,
    ) -> None:
        """``start_file`` is called with the first line of each file that is opened."""
        self._path, self._rows, self._poll = path, rows, poll_seconds
        self._encoding, self._start_file = encoding, start_file
        self._missing_since: float | None = None
        self._was_at_end = float("-inf")  # when all that was there had been read
        self._last_us: int | None = None

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield new alarms for ever; wait for a file that does not exist yet or cannot be read."""
        position = FilePosition.read(bookmark) if bookmark else None
        self._last_us = position.last_us if position else None
        while not stop.is_set():
            try:
                reading = self._next(position)
                file = reading.path.open("rb") if reading else None
            except OSError as error:  # a file may be deleted meanwhile
                log.debug("cannot read %s now: %s", self._path, error)
                reading = file = None
            if reading is not None and file is not None:
                with file:
                    if reading.moved and position is not None:
                        lost = self._lost(position) if reading.lost else None
                        position = FilePosition.at_offset(file, reading.offset, self._last_us)
                        yield SourceBatch([], position.write(), lost=lost)
                    self._read_header(file)
                    file.seek(reading.offset)
                    for batch, reached in self._read_to_the_end(file, reading.offset):
                        position = reached
                        yield batch
                        if stop.is_set():
                            return
                self._was_at_end = time.monotonic()
            stop.wait(self._poll)

    def _next(self, position: FilePosition | None) -> _Reading | None:
        """Return the oldest file with something unread, from the bookmarked one on to the path itself."""
        files = self._rotated_files()
        if not files or (position is None and files[-1] != self._path):
            return None
        if position is None:
            return _Reading(self._path, 0)
        file_path = find_file(position, files)
        if file_path is not None:
            self._missing_since = None
            return self._unread(file_path, position.offset, files)
        return self._after_a_loss(position, files)

    def _unread(self, file_path: Path, offset: int, files: list[Path]) -> _Reading | None:
        if _has_line(file_path, offset):
            return _Reading(file_path, offset)
        later = files[files.index(file_path) + 1 :]
        following = next((path for path in later if _has_line(path, 0)), None)
        if following is None:
            self._was_at_end = time.monotonic()
            return None
        return _Reading(following, 0)

    def _after_a_loss(self, position: FilePosition, files: list[Path]) -> _Reading | None:
        """Return where to continue if the position was not found for some polls and the log exists."""
        if files[-1] != self._path:
            return None
        now = time.monotonic()
        if self._missing_since is None:
            self._missing_since = now
        if now - self._missing_since < _GRACE_POLLS * self._poll:
            return None
        for path in reversed(files):
            with path.open("rb") as file:
                offset = position.found_in(file)
            if offset is not None:
                log.info("older rows were removed from %s; reading continues after the last row read", path)
                return _Reading(path, offset, moved=True)
        newer = [path for path in files if position.mtime_ns and path.stat().st_mtime_ns > position.mtime_ns]
        first, start = (newer or [self._path])[0], 0
        with first.open("rb") as file:
            if position.covers(file):
                start = os.fstat(file.fileno()).st_size
        is_lost = position.offset > 0 and self._missing_since - self._was_at_end > _GRACE_POLLS * self._poll
        if not is_lost:
            log.warning("%s was truncated; rows written just before may be missing", self._path)
        return _Reading(first, start, moved=True, lost=is_lost)

    def _lost(self, position: FilePosition) -> Lost:
        since = from_us(position.last_us) if position.last_us is not None else None
        return Lost(
            f"{self._path.name} was truncated or replaced while it was not read. The rows after byte "
            f"{position.offset} are neither in it nor in its rotated files, so alarms may be missing. Keep "
            "rotated files uncompressed until they are read.",
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

    def _read_header(self, file: BinaryIO) -> None:
        if self._start_file is not None:
            file.seek(0)
            self._start_file(file.readline(_MAX_LINE_BYTES).decode(self._encoding, errors="replace"))

    def _read_to_the_end(self, file: BinaryIO, offset: int) -> Iterator[tuple[SourceBatch, FilePosition]]:
        batch, unread = SourceBatch([], ""), offset
        for line in _complete_lines(file):
            text = line.decode(self._encoding, errors="replace")
            try:
                found = self._rows.read(text)
                if isinstance(found, Record):
                    batch.add(*found)
                elif found is not None:
                    batch.add(found)
            except RowRejected as error:
                batch.skipped.append(f"byte {unread}: {error}; the row begins with {text.strip()[:60]!r}")
            unread += len(line)
            if len(batch.alarms) + len(batch.transitions) >= BATCH or len(batch.skipped) >= BATCH:
                yield self._finish(batch, file, unread)
                batch = SourceBatch([], "")
        if unread > offset:
            yield self._finish(batch, file, unread)

    def _finish(self, batch: SourceBatch, file: BinaryIO, offset: int) -> tuple[SourceBatch, FilePosition]:
        if batch.alarms:
            self._last_us = to_us(batch.alarms[-1].at)
        position = FilePosition.at_offset(file, offset, self._last_us)
        return replace(batch, bookmark=position.write()), position


def _complete_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines that end in a newline; an overlong line without one is split."""
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
