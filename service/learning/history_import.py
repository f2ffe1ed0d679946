"""Import a machine's alarm history: a log file to committed events, checked row by row like live ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Condition
from typing import IO
from uuid import UUID

import numpy as np

from service.database.event_row import IN_TIME, EventRow
from service.database.files import stale_files
from service.errors import Conflict, Gone, TooLarge, TooMany, Unavailable
from service.http.rate_limit import ConcurrencyLimit, LimitReached
from service.ingest.service import TimeBounds, TimePolicy
from service.learning.history_file import ImportFile, blocks, plain_rows, require_alarms, scan
from service.learning.history_scan import Survey
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, EventWriter, QuarantineRow, WriteResult
from service.machines.models import Machine
from service.machines.store import MachineStore
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.log_rows import RowReader, RowRejected
from wire.timestamps import from_us, to_us

BATCH = 10_000
_MAX_QUARANTINE_BYTES = 8 << 20  # of rejected rows that wait for a commit
_MAX_EXAMPLES = 3
_RETRY_AFTER_S = 30.0


@dataclass
class ImportResult:
    """The counts of a file's rows."""

    stored: int = 0
    duplicates: int = 0
    too_old: int = 0
    from_the_future: int = 0
    rejected: int = 0
    last_us: int | None = None  # of the rows that count
    rows: int = 0
    examples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class UploadLimits:
    """How many uploads may run at once: in all, and per site and per user; ``loading`` of them write events."""

    in_all: int = 8
    per_owner: int = 3
    loading: int = 2


@dataclass
class HistoryImporter:
    """Imports uploaded files; each is stored first, because its epoch is a digest of its bytes."""

    machines: MachineStore
    recorder: EventWriter
    clock: PlantClock
    policy: TimePolicy
    folder: Path
    max_bytes: int
    limits: UploadLimits = field(default_factory=UploadLimits)
    stored: EventStore | None = None
    _places: ConcurrencyLimit = field(init=False, default_factory=ConcurrencyLimit)
    _loading: int = field(init=False, default=0)
    _stopping: bool = field(init=False, default=False)
    _changed: Condition = field(init=False, default_factory=Condition)
    _uploads: dict[MachineId, "Upload"] = field(init=False, default_factory=dict)

    @contextmanager
    def upload(self, machine: Machine, who: str) -> Iterator["Upload"]:
        """Yield a temporary file to write to; raise :class:`TooMany` if too many uploads are running."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._slot(machine, who), NamedTemporaryFile(dir=self.folder, prefix="history-") as file:
            upload = self._uploads[machine.id] = Upload(file, self.max_bytes)
            try:
                yield upload
            finally:
                if self._uploads.get(machine.id) is upload:
                    del self._uploads[machine.id]

    @contextmanager
    def _slot(self, machine: Machine, who: str) -> Iterator[None]:
        limits = self.limits
        names = {
            f"site {machine.id.site}": limits.per_owner,
            f"user {who}": limits.per_owner,
            "all": limits.in_all,
        }
        try:
            self._places.take(names)
        except LimitReached as full:
            whose = "in all" if full.name == "all" else f"of {full.name}"
            raise TooMany(
                f"{full.most} history files {whose} are being loaded already. Load this one when they are done.",
                wait=_RETRY_AFTER_S,
            ) from None
        try:
            yield
        finally:
            self._places.give_back(names)

    def underway(self, machine: Machine) -> "Upload | None":
        """Return the newest upload of a machine that runs in this process."""
        return self._uploads.get(machine.id)

    def load(self, machine: Machine, log: ImportFile, upload: "Upload | None" = None) -> ImportResult:
        """Commit an uploaded file in batches, until the machine is retired or the service stops."""

        def on_progress(done: int, lines: int | None) -> None:
            if upload is not None:
                upload.lines_done, upload.lines = done, lines
            if self._stopping:
                raise Unavailable("The service stops. Load the file again; what is stored already stays as it is.")
            self.machines.get(machine.id).require_active()

        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._loading < self.limits.loading)
            self._loading += 1
        try:
            on_progress(0, None)
            return load_history(
                machine,
                log,
                recorder=self.recorder,
                now=self.clock.now(),
                policy=self.policy,
                stored=self.stored,
                progress=on_progress,
            )
        finally:
            with self._changed:
                self._loading -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Stop all imports after their current batch and wait for them."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._loading == 0)

    def sweep(self, *, older_than: float = inf) -> None:
        """Delete files of killed uploads, last written before a time (Unix); all of them only while none runs."""
        for left in stale_files(self.folder, "history-*", older_than=older_than):
            left.unlink(missing_ok=True)


@dataclass
class Upload:
    """A file that is being received, rejected as soon as it is too large; ``lines`` are known after that."""

    file: IO[bytes]
    max_bytes: int
    size: int = 0
    lines_done: int = 0
    lines: int | None = None

    @property
    def path(self) -> Path:
        """The path of the file, with all data flushed."""
        self.file.flush()
        return Path(self.file.name)

    def write(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.size > self.max_bytes:
            raise TooLarge(f"A history file may have {self.max_bytes // 1_000_000} MB; load it in parts.")
        self.file.write(chunk)


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
    require_alarms(log)
    progress(0, lines)
    survey = Survey(log.serial, log.zone, policy.bounds(now))
    for first, block in blocks(log):
        survey.read(block)
        if first % BATCH < len(block):
            progress(0, lines)
    survey.insist(log.title, policy.retention)
    reading = _ImportReader(machine, log, epoch, policy.bounds(now), EventWrite(to_us(now)))
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
            "time zone. What was stored then stays. Give that time zone; or, if it was wrong, erase the machine "
            "(alarmcast admin machine erase), enrol it again and load the file anew.",
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
    loaded: ImportResult = field(default_factory=ImportResult)
    has_begun: bool = False
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
        plain = plain_rows(lines, self.log.serial, self.log.zone)
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
        rows = RowReader(self.log.serial, self.log.zone)
        for number, line in enumerate(lines, start=first):
            try:
                alarm = rows.read(line)
            except RowRejected as error:
                self._reject(number, line, error)
                continue
            if alarm is not None:
                self.loaded.rows += 1
                at_us = to_us(alarm.at)
                if self.bounds.earliest_us <= at_us <= self.bounds.latest_us:
                    event = EventRow(self.machine.row_id, self.epoch, number, alarm.code, at_us, IN_TIME)
                    self.recording.events.append(event)

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
