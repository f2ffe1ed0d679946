"""Import a machine's alarm history: a log file to committed events, checked row by row like live ones."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

from service.database.event_row import IN_TIME, EventRow
from service.errors import Conflict, Gone
from service.ingest.service import TimeBounds, TimePolicy
from service.learning.history_file import ImportFile, blocks, plain_rows, scan
from service.learning.history_rows import HistoryReader, HistoryRow
from service.learning.history_scan import Survey, survey_file
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, EventWriter, QuarantineRow, WriteResult
from service.machines.models import Machine
from wire.log_rows import RowRejected
from wire.timestamps import from_us, to_us

BATCH = 10_000
_MAX_QUARANTINE_BYTES = 8 << 20  # of rejected rows that wait for a commit
_MAX_EXAMPLES = 3


@dataclass
class ImportResult:
    """The counts of a file's rows."""

    stored: int = 0
    duplicates: int = 0
    too_old: int = 0
    from_the_future: int = 0
    rejected: int = 0
    cleared: int = 0
    last_us: int | None = None  # of the rows that count
    rows: int = 0
    examples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def load_history(
    machine: Machine,
    log: ImportFile,
    *,
    recorder: EventWriter,
    now: datetime,
    policy: TimePolicy,
    stored: EventStore | None = None,
    progress: Callable[[int, int], None] = lambda _done, _lines: None,
) -> ImportResult:
    """Commit a log file in batches; its epoch is a digest of its bytes, so loading it twice changes nothing.

    The whole file is read before a row is stored: a file that is broken, of several machines or of another time is
    rejected. Rows outside the time bounds are counted and left out. An alarm that is already ``stored`` with the
    same time and code, from the agent or another file, is a duplicate.
    """
    epoch, lines = scan(log)
    survey = survey_file(log, policy.bounds(now), progress=lambda: progress(0, lines))
    survey.insist(log.title, policy.retention)
    reading = _ImportReader(machine, log, epoch, policy.bounds(now), EventWrite(to_us(now)), HistoryReader(log))
    reading.loaded = _expected(survey, policy)
    reading.known = KnownAlarms(stored, machine).within(survey.first_us, survey.last_us)
    for first, block in blocks(log):
        reading.take(first, block)
        if not reading.has_begun and reading.recording.events:
            _begin(reading, recorder)
        last, is_full = first + len(block) - 1, reading.is_full
        if is_full:
            _commit(reading, recorder)
        if is_full or last % BATCH < len(block):  # most rows may be another machine's
            progress(last, lines)
    _commit(reading, recorder)
    return reading.loaded


def _expected(survey: Survey, policy: TimePolicy) -> ImportResult:
    return ImportResult(
        too_old=survey.too_old,
        from_the_future=survey.from_the_future,
        last_us=survey.last_us,
        cleared=survey.cleared,
        notes=survey.notes(policy.retention),
    )


def _begin(reading: "_ImportReader", recorder: EventWriter) -> None:
    """Commit the first event alone: it shows whether the file was loaded before in another time zone."""
    reading.leave_out_known()
    waiting = reading.recording
    if not waiting.events:
        return
    recorded = _store(reading, EventWrite(waiting.received_us, events=[waiting.events.pop(0)]), recorder)
    if recorded.conflicts:
        raise Conflict(
            f"{reading.log.title} has been loaded for {reading.machine.id} before, with its times read in another "
            "time zone or with other columns. What was stored then stays. Give those; or, if they were wrong, "
            "erase the machine (alarmcast admin machine erase), enrol it again and load the file anew.",
            pointer="query/time_zone",
        )
    reading.has_begun = True
    waiting.continued = reading.recording.continued
    reading.recording = waiting
    _count(reading.loaded, EventWrite(0), recorded)


def _commit(reading: "_ImportReader", recorder: EventWriter) -> None:
    reading.leave_out_known()
    recording = reading.recording
    _count(reading.loaded, recording, _store(reading, recording, recorder))


def _store(reading: "_ImportReader", recording: EventWrite, recorder: EventWriter) -> WriteResult:
    """Commit and start the next batch; raise if the machine may not have these events any more."""
    recorded = recorder.commit(recording)
    machine = reading.machine
    if recorded.absent:
        raise Gone(f"{machine.id} has been retired or erased while its history was loaded; loading has stopped.")
    if recorded.refused:
        raise Conflict(
            f"{machine.id} has too many spools and history files; nothing of {reading.log.title} is stored. "
            "Join its history into fewer files, or erase the machine and enrol it again."
        )
    begun = {(machine.row_id, reading.epoch)} if recording.events else recording.continued
    reading.recording = EventWrite(recording.received_us, continued=begun)
    return recorded


@dataclass(frozen=True)
class KnownAlarms:
    """The stored alarms of a machine; none if ``log`` is None."""

    log: EventStore | None
    machine: Machine

    def within(self, first_us: int | None, last_us: int | None) -> "KnownAlarms":
        """Return the stored alarms if they overlap with a file from its first to its last alarm, else none."""
        none = KnownAlarms(None, self.machine)
        if self.log is None or first_us is None or last_us is None:
            return none
        first, last = self.log.first_at(self.machine), self.log.last_at(self.machine)
        if first is None or last is None or from_us(last_us) < first or from_us(first_us) > last:
            return none
        return self

    def split(self, events: list[EventRow]) -> tuple[list[EventRow], int]:
        """Return the events that are not stored yet by time and code, and the number of those that are."""
        if self.log is None or not events:
            return events, 0
        times = np.array([event.at_us for event in events], dtype=np.int64)
        end = from_us(int(times.max())) + timedelta(microseconds=1)
        stored = self.log.series(self.machine, from_us(int(times.min())), end)
        starts = np.searchsorted(stored.times, times, side="left").tolist()
        ends = np.searchsorted(stored.times, times, side="right").tolist()
        new = [
            event
            for event, start, stop in zip(events, starts, ends, strict=True)
            if start == stop or event.code not in stored.codes[start:stop]
        ]
        return new, len(events) - len(new)


@dataclass
class _ImportReader:
    """The rows that wait for the next commit, and the counts of those before."""

    machine: Machine
    log: ImportFile
    epoch: UUID
    bounds: TimeBounds
    recording: EventWrite
    reader: HistoryReader
    loaded: ImportResult = field(default_factory=ImportResult)
    has_begun: bool = False
    described: set[int] = field(default_factory=set)
    known: KnownAlarms | None = None

    @property
    def is_full(self) -> bool:
        rejected = self.recording.quarantined
        is_large = sum(len(row.body) for row in rejected) >= _MAX_QUARANTINE_BYTES
        return len(self.recording.events) >= BATCH or len(rejected) >= BATCH or is_large

    def leave_out_known(self) -> None:
        """Count and drop the rows that are stored already."""
        if self.known is not None:
            self.recording.events, known = self.known.split(self.recording.events)
            self.loaded.duplicates += known

    def take(self, first: int, lines: list[str]) -> None:
        """Read lines, the first of which has this number in its file."""
        is_plain = self.reader.has_usual_columns
        plain = plain_rows(lines, self.log.serial, self.log.zone) if is_plain else None
        if plain is None:
            self._take_one_by_one(first, lines)
            return
        row, epoch, (earliest, latest) = self.machine.row_id, self.epoch, self.bounds
        self.loaded.rows += len(plain)
        self.recording.events += [
            EventRow(row, epoch, first + place, code, at_us, IN_TIME)
            for place, at_us, code in plain
            if earliest <= at_us <= latest
        ]

    def _take_one_by_one(self, first: int, lines: list[str]) -> None:
        for number, line in enumerate(lines, start=first):
            try:
                row = self.reader.split(line)
                if row is None:
                    continue
                serial = row.serial
                if self.log.serial not in (None, serial):
                    continue
                understood = self.reader.take(row)
            except RowRejected as error:
                self._reject(number, line, error)
                continue
            self.loaded.rows += 1
            if (alarm := understood.alarm) is not None:
                at_us = to_us(alarm.at)
                if self.bounds.earliest_us <= at_us <= self.bounds.latest_us:
                    self._describe(understood)
                    event = EventRow(self.machine.row_id, self.epoch, number, alarm.code, at_us, IN_TIME)
                    self.recording.events.append(event)

    def _describe(self, row: HistoryRow) -> None:
        """Let the catalogue know a code that the file describes, once."""
        if row.alarm is None or row.alarm.code in self.described:
            return
        description = row.description()
        if description is not None:
            self.described.add(row.alarm.code)
            self.recording.codes.append((self.machine.row_id, description))

    def _reject(self, number: int, line: str, error: RowRejected) -> None:
        topic, body = f"history:{self.log.name or self.log.path.name}"[:1000], line.encode()[:64_000]
        detail = f"line {number}: {error}"
        if len(self.loaded.examples) < _MAX_EXAMPLES:
            self.loaded.examples.append(detail)
        self.loaded.rows += 1
        self.recording.quarantined.append(QuarantineRow(self.machine.row_id, topic, "bad_row", detail, body))


def _count(loaded: ImportResult, recording: EventWrite, recorded: WriteResult) -> None:
    loaded.stored += recorded.stored
    loaded.duplicates += recorded.duplicates
    loaded.rejected += len(recording.quarantined) + recorded.conflicts
