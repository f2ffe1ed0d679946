"""A log file before a row of it is stored: whose rows it has, and how many of them are of a time that counts."""

from dataclasses import dataclass, field
from datetime import timedelta, tzinfo

import numpy as np
from numpy.typing import NDArray

from service.errors import InputRejected
from service.ingest.service import TimeBounds
from service.learning.history_file import plain_columns
from wire.log_rows import RowReader, RowRejected, fields
from wire.timestamps import from_us, to_us

_MOST_SERIALS, _LONGEST_SERIAL, _NAMED_SERIALS = 1_000, 100, 10


@dataclass
class Survey:
    """What a file holds, for one serial or, if ``serial`` is None, for all of its rows."""

    serial: str | None
    zone: tzinfo
    bounds: TimeBounds
    serials: dict[str, int] = field(default_factory=dict)
    has_more_serials: bool = False
    in_time: int = 0
    too_old: int = 0
    from_the_future: int = 0
    first_us: int | None = None  # of the rows that count
    last_us: int | None = None
    newest_too_old_us: int | None = None
    oldest_future_us: int | None = None

    def read(self, lines: list[str]) -> None:
        """Count the next lines of a file; those that are no alarms are passed over."""
        columns = plain_columns(lines, self.zone)
        if columns is None:
            self._read_one_by_one(lines)
            return
        for serial in set(columns.serials):
            self._count_serial(serial, columns.serials.count(serial))
        self._count_times(columns.times[self._mine(columns.serials)])

    def insist(self, title: str, retention: timedelta) -> None:
        """Raise :class:`InputRejected` if the file is not one machine's, or if none of its rows would count."""
        if self.serial is not None and not self.in_time + self.too_old + self.from_the_future:
            raise InputRejected(
                f"{title} has no row of serial {self.serial}. {self._named()} Nothing was stored.",
                pointer="query/serial",
            )
        if self.serial is None and len(self.serials) > 1:
            raise InputRejected(
                f"{title} has rows of several machines. {self._named()} Nothing was stored. Choose the serial of "
                "this machine (--serial).",
                pointer="query/serial",
            )
        if self.in_time:
            return
        if self.too_old:
            raise InputRejected(
                f"{title} is too old: its newest alarm is of {_day(self.newest_too_old_us)}, and only the last "
                f"{retention.days} days count (retention_days={retention.days}). Nothing was stored. Load a newer "
                "log, or raise ALARMCAST_RETENTION_DAYS and start the service again."
            )
        raise InputRejected(
            f"All alarms of {title} lie in the future, the first at {_minute(self.oldest_future_us)}. Nothing was "
            "stored. Check the time zone of the log, and the clock of the machine that wrote it."
        )

    def notes(self, retention: timedelta) -> list[str]:
        """Return a sentence about each kind of row that does not count."""
        notes = []
        if self.too_old:
            notes.append(
                f"{self.too_old:,} ignored: older than retention_days={retention.days} "
                f"(newest {_day(self.newest_too_old_us)})."
            )
        if self.from_the_future:
            notes.append(
                f"{self.from_the_future:,} ignored: in the future (first {_minute(self.oldest_future_us)}). "
                "Check the time zone of the log, and the clock of the machine that wrote it."
            )
        return notes

    def _mine(self, serials: tuple[str, ...]) -> NDArray[np.bool_]:
        if self.serial is None:
            return np.ones(len(serials), dtype=np.bool_)
        return np.fromiter((one == self.serial for one in serials), dtype=np.bool_, count=len(serials))

    def _read_one_by_one(self, lines: list[str]) -> None:
        rows, times = RowReader(None, self.zone), []
        for line in lines:
            try:
                row = fields(line)
                alarm = None if row is None else rows.take(row)
            except RowRejected:
                continue
            if row is not None and alarm is not None:
                self._count_serial(row.serial or "", 1)
                if self.serial is None or row.serial == self.serial:
                    times.append(to_us(alarm.at))
        self._count_times(np.array(times, dtype=np.int64))

    def _count_serial(self, serial: str, rows: int) -> None:
        if not serial:
            return  # a row that names no machine may be of any machine
        known = serial[:_LONGEST_SERIAL] if serial.isprintable() else ascii(serial[:_LONGEST_SERIAL])
        if known in self.serials or len(self.serials) < _MOST_SERIALS:
            self.serials[known] = self.serials.get(known, 0) + rows
        else:
            self.has_more_serials = True

    def _count_times(self, times: NDArray[np.int64]) -> None:
        old, future = times < self.bounds.earliest_us, times > self.bounds.latest_us
        counted = times[~(old | future)]
        self.in_time += len(counted)
        self.too_old += int(old.sum())
        self.from_the_future += int(future.sum())
        self.first_us = _earliest(self.first_us, counted)
        self.last_us = _latest(self.last_us, counted)
        self.newest_too_old_us = _latest(self.newest_too_old_us, times[old])
        self.oldest_future_us = _earliest(self.oldest_future_us, times[future])

    def _named(self) -> str:
        """Say which serials the file has, the most frequent ones first."""
        if not self.serials:
            return "Its rows name no serial."
        ordered = sorted(self.serials.items(), key=lambda one: (-one[1], one[0]))
        words = [f"{serial} ({rows:,} {'row' if rows == 1 else 'rows'})" for serial, rows in ordered]
        left = len(words) - _NAMED_SERIALS
        more = f" and {'at least ' if self.has_more_serials else ''}{left:,} more" if left > 0 else ""
        return f"Its serials: {', '.join(words[:_NAMED_SERIALS])}{more}."


def _latest(before: int | None, times: NDArray[np.int64]) -> int | None:
    if len(times) == 0:
        return before
    return int(times.max()) if before is None else max(before, int(times.max()))


def _earliest(before: int | None, times: NDArray[np.int64]) -> int | None:
    if len(times) == 0:
        return before
    return int(times.min()) if before is None else min(before, int(times.min()))


def _day(at_us: int | None) -> str:
    return "" if at_us is None else f"{from_us(at_us):%Y-%m-%d}"


def _minute(at_us: int | None) -> str:
    return "" if at_us is None else f"{from_us(at_us):%Y-%m-%d %H:%M} UTC"
