"""Replay a recorded log: shifted to the present at its own pace, or unchanged at once."""

import gzip
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event

from edge_agent.errors import ConfigRejected
from edge_agent.sources import SourceBatch
from wire.alarm import Alarm
from wire.clock import PlantClock
from wire.log_rows import RowReader, RowRejected

BATCH = 500
_MAX_WAIT_S = 0.5


class Replay:
    """Replays one serial of a CSV file, gzipped or not.

    With ``at_once`` times are unchanged and everything is sent as fast as possible: history over MQTT. Otherwise
    the first row happens now and the rest follows by the plant clock; the shift is part of the bookmark, so a
    restarted agent continues where it was.
    """

    def __init__(self, path: Path, *, rows: RowReader, clock: PlantClock, at_once: bool = False) -> None:
        self._path, self._rows, self._clock, self._at_once = path, rows, clock, at_once

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield the log from the bookmark on; ends with the file."""
        done, shift = _read_bookmark(bookmark)
        batch: list[Alarm] = []
        skipped: list[str] = []
        line_number = done
        for line_number, alarm, error_text in self._lines(after=done):
            if error_text:
                skipped.append(f"line {line_number}: {error_text}")
            if alarm is not None:
                if shift is None:
                    shift = timedelta(0) if self._at_once else self._clock.now() - alarm.at
                due = Alarm(alarm.at + shift, alarm.code)
                if batch and not self._at_once and due.at > self._clock.now():
                    yield SourceBatch(batch, _bookmark(line_number - 1, shift), skipped)
                    batch, skipped = [], []
                if not (self._at_once or self._wait_until_due(due, stop)) or stop.is_set():
                    return
                batch.append(due)
            if len(batch) >= BATCH or len(skipped) >= BATCH:
                yield SourceBatch(batch, _bookmark(line_number, shift), skipped)
                batch, skipped = [], []
        if batch or skipped:
            yield SourceBatch(batch, _bookmark(line_number, shift), skipped)

    def _lines(self, *, after: int) -> Iterator[tuple[int, Alarm | None, str | None]]:
        for number, line in enumerate(self._raw_lines(), start=1):
            if number <= after:
                continue
            try:
                yield number, self._rows.read(line), None
            except RowRejected as error:
                yield number, None, f"{error}; the row begins with {line.strip()[:60]!r}"

    def _raw_lines(self) -> Iterator[str]:
        opener = gzip.open if self._path.suffix == ".gz" else open
        try:
            with opener(self._path, "rt", encoding="utf-8", errors="replace") as lines:
                yield from lines
        except (OSError, EOFError, zlib.error) as error:
            raise ConfigRejected(
                f"Cannot read {self._path}: {error}. Give a whole file to --source-path."
            ) from None

    def _wait_until_due(self, alarm: Alarm, stop: Event) -> bool:
        while (wait := self._clock.wall_seconds(alarm.at - self._clock.now())) > 0:
            if stop.wait(min(wait, _MAX_WAIT_S)):
                return False
        return True


def _bookmark(line: int, shift: timedelta | None) -> str:
    return str(line) if shift is None else f"{line} {shift // timedelta(microseconds=1)}"


def _read_bookmark(bookmark: str | None) -> tuple[int, timedelta | None]:
    line, _, shift = (bookmark or "0").partition(" ")
    return int(line), timedelta(microseconds=int(shift)) if shift else None
