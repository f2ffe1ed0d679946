"""A log file before a row of it is stored: whose rows it has, and how many of them are of a time that counts."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.errors import InputRejected
from service.ingest.service import TimeBounds
from service.learning.history_file import ImportFile, blocks, plain_columns
from service.learning.history_rows import HistoryReader, HistoryRow
from wire.log_rows import RowRejected
from wire.timestamps import from_us, to_us

_FIRST_ROWS, _MOST_CODES = 10, 20_000
_PROGRESS_LINES = 10_000
_MOST_SERIALS, _LONGEST_SERIAL, _NAMED_SERIALS = 1_000, 100, 10


class SeenRow(NamedTuple):
    """A row as it is understood."""

    number: int
    line: str
    serial: str | None
    row: HistoryRow


class RejectedRow(NamedTuple):
    """A row that cannot be read, and why."""

    number: int
    line: str
    reason: str


@dataclass
class SurveyDetails:
    """What a person wants to see of a file before it is stored."""

    codes: Counter[int] = field(default_factory=Counter)
    names: dict[int, HistoryRow] = field(default_factory=dict)
    first_rows: list[SeenRow] = field(default_factory=list)
    rejected_rows: list[RejectedRow] = field(default_factory=list)

    @property
    def wants_rows(self) -> bool:
        return len(self.first_rows) < _FIRST_ROWS

    def add(self, seen: SeenRow) -> None:
        """Count a row of the machine."""
        alarm = seen.row.alarm
        if self.wants_rows:
            self.first_rows.append(seen)
        if alarm is None:
            return
        self.count([alarm.code])
        if (seen.row.name or seen.row.text) and alarm.code in self.codes:
            self.names.setdefault(alarm.code, seen.row)

    def count(self, codes: Iterable[int]) -> None:
        """Count codes; of a file with absurdly many different ones only the first are counted."""
        if len(self.codes) < _MOST_CODES:
            self.codes.update(codes)
        else:
            self.codes.update(code for code in codes if code in self.codes)

    def reject(self, rejected: RejectedRow) -> None:
        """Keep the first rows that cannot be read."""
        if len(self.rejected_rows) < _FIRST_ROWS:
            self.rejected_rows.append(rejected)


@dataclass
class Survey:
    """What a file holds, for the serial that is asked for or, if that is None, for all of its rows."""

    reader: HistoryReader
    serial: str | None
    zone: tzinfo
    bounds: TimeBounds
    details: SurveyDetails | None = None
    serials: dict[str, int] = field(default_factory=dict)
    has_more_serials: bool = False
    cleared: int = 0
    other_states: int = 0
    rejected: int = 0
    in_time: int = 0
    too_old: int = 0
    from_the_future: int = 0
    first_us: int | None = None  # of the rows that count
    last_us: int | None = None
    newest_too_old_us: int | None = None
    oldest_future_us: int | None = None

    @classmethod
    def empty(cls, log: ImportFile, bounds: TimeBounds) -> "Survey":
        """Return the survey of a file of which nothing can be read."""
        return cls(HistoryReader(ImportFile(log.path)), log.serial, log.zone, bounds)

    @property
    def alarms(self) -> int:
        """The number of rows that raise an alarm."""
        return self.in_time + self.too_old + self.from_the_future

    def read(self, first: int, lines: list[str]) -> None:
        """Count the next lines of a file, the first of which has this number."""
        details = self.details
        is_plain = self.reader.has_usual_columns and not (details is not None and details.wants_rows)
        columns = plain_columns(lines, self.zone) if is_plain else None
        if columns is None:
            self._read_one_by_one(first, lines)
            return
        for serial in set(columns.serials):
            self._count_serial(serial, columns.serials.count(serial))
        mine = self._mine(columns.serials)
        self._count_times(columns.times[mine])
        if details is not None:
            details.count(map(int, compress(columns.codes, mine.tolist())))

    def insist(self, title: str, retention: timedelta) -> None:
        """Raise :class:`InputRejected` if the file is not one machine's, or if none of its rows would count."""
        if self.serial is not None and not self.alarms + self.cleared + self.other_states:
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
        if not self.from_the_future:
            raise InputRejected(
                f"No row of {title} raises an alarm: {self.cleared:,} clear one, {self.other_states:,} have "
                "another state. Nothing was stored. Check the column of the state and which of its values raise.",
                pointer="query/raised",
            )
        raise InputRejected(
            f"All alarms of {title} lie in the future, the first at {_minute(self.oldest_future_us)}. Nothing was "
            "stored. Check the time zone of the log, and the clock of the machine that wrote it."
        )

    def notes(self, retention: timedelta) -> list[str]:
        """Return a sentence about each kind of row that does not count."""
        notes = []
        if self.cleared:
            notes.append(f"{self.cleared:,} ignored: they clear an alarm.")
        if self.other_states:
            notes.append(f"{self.other_states:,} ignored: their state is neither raised nor cleared.")
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

    def ordered_serials(self) -> list[tuple[str, int]]:
        """Return the serials and their numbers of rows, the most frequent ones first."""
        return sorted(self.serials.items(), key=lambda one: (-one[1], one[0]))

    def _mine(self, serials: tuple[str, ...]) -> NDArray[np.bool_]:
        if self.serial is None:
            return np.ones(len(serials), dtype=np.bool_)
        return np.fromiter((one == self.serial for one in serials), dtype=np.bool_, count=len(serials))

    def _read_one_by_one(self, first: int, lines: list[str]) -> None:
        times: list[int] = []
        for number, line in enumerate(lines, start=first):
            serial: str | None = self.serial
            try:
                parts = self.reader.split(line)
                if parts is None:
                    continue
                serial = parts.serial
                row = self.reader.take(parts)
            except RowRejected as error:
                if serial == self.serial or self.serial is None:
                    self._reject(RejectedRow(number, line, str(error)))
                continue
            self._count_serial(serial or "", 1)
            if self.serial is None or serial == self.serial:
                self._count_state(row)
                if row.alarm is not None:
                    times.append(to_us(row.alarm.at))
                if self.details is not None:
                    self.details.add(SeenRow(number, line, serial, row))
        self._count_times(np.array(times, dtype=np.int64))

    def _reject(self, rejected: RejectedRow) -> None:
        self.rejected += 1
        if self.details is not None:
            self.details.reject(rejected)

    def _count_state(self, row: HistoryRow) -> None:
        if row.alarm is None:
            self.cleared += row.cleared
            self.other_states += not row.cleared

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
        words = [f"{name} ({rows:,} {'row' if rows == 1 else 'rows'})" for name, rows in self.ordered_serials()]
        left = len(words) - _NAMED_SERIALS
        more = f" and {'at least ' if self.has_more_serials else ''}{left:,} more" if left > 0 else ""
        return f"Its serials: {', '.join(words[:_NAMED_SERIALS])}{more}."


def survey_file(
    log: ImportFile,
    bounds: TimeBounds,
    *,
    details: SurveyDetails | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Survey:
    """Read a whole file of alarms and store nothing, or raise :class:`InputRejected`."""
    reader = HistoryReader(log)
    reader.require_alarms()
    progress()
    survey = Survey(reader, log.serial, log.zone, bounds, details)
    for first, block in blocks(log):
        survey.read(first, block)
        if first % _PROGRESS_LINES < len(block):
            progress()
    return survey


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
