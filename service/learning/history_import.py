"""A machine's past in bulk: a log file to committed events, judged row by row like live ones."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from itertools import islice
from math import inf
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Condition
from typing import IO, cast
from uuid import UUID, uuid5

from service.database.event_row import IN_TIME, EventRow
from service.database.files import stale_files
from service.errors import Conflict, Gone, InputRejected, TooLarge, TooMany, Unavailable
from service.ingest.service import TimeBounds, TimePolicy
from service.learning.fast_csv import plain_rows
from service.learning.history_scan import Survey, other_kind
from service.learning.stored_alarms import KnownAlarms
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, EventWriter, QuarantineRow, WriteResult
from service.machines.models import Machine
from service.machines.store import MachineStore
from service.messaging.concurrency_limit import ConcurrencyLimit, LimitReached
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.log_rows import RowReader, RowRejected
from wire.timestamps import to_us

BATCH = 10_000
_BLOCK = 1_000  # lines: a bad one makes its whole block be read one by one
_BLOCK_BYTES = 1 << 20  # a block ends here even with fewer lines; decoded, it may take four times as much
_QUARANTINE_BYTES = 8 << 20  # of refused rows that wait for a commit
_GZIP = b"\x1f\x8b"
_CHUNK, _LONGEST_LINE, _MOST_UNPACKED = 1 << 20, 1 << 20, 20_000_000_000
_EXAMPLES = 3
_WAIT_FOR_A_PLACE = 30.0  # seconds
_GLANCE = 1_000  # rows among which there must be an alarm
_HISTORY = UUID("6f0f5a0e-3f0b-4a57-9d1c-6a2f0a4c7d11")  # namespace of the epochs of history files


@dataclass(frozen=True)
class ImportFile:
    """A file of alarms: whose rows to take from it, and the zone of timestamps that name none."""

    path: Path
    serial: str | None = None
    zone: tzinfo = UTC
    name: str | None = None

    @property
    def title(self) -> str:
        """What people call it; an uploaded file has another name here."""
        return self.name or str(self.path)


@dataclass
class ImportResult:
    """What became of a file's rows."""

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
    """How many files may be under way at once: in all, and by site and by person; ``loading`` of them are stored.

    The others wait for their turn, so that neither threads nor the database are theirs alone.
    """

    in_all: int = 8
    of_one: int = 3
    loading: int = 2


@dataclass
class HistoryImporter:
    """Takes a machine's past while the service runs: first to a file, because its epoch is made from its bytes."""

    machines: MachineStore
    recorder: EventWriter
    clock: PlantClock
    policy: TimePolicy
    folder: Path
    most_bytes: int
    limits: UploadLimits = field(default_factory=UploadLimits)
    _places: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    stored: EventStore | None = None
    _loading: int = 0
    _stopping: bool = False
    _changed: Condition = field(default_factory=Condition)
    _uploads: dict[MachineId, "Upload"] = field(default_factory=dict)

    @contextmanager
    def upload(self, machine: Machine, who: str) -> Iterator["Upload"]:
        """Yield a file to write to that is gone afterwards; raises :class:`TooMany` if too many are under way."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._place(machine, who), NamedTemporaryFile(dir=self.folder, prefix="history-") as file:
            upload = self._uploads[machine.id] = Upload(file, self.most_bytes)
            try:
                yield upload
            finally:
                if self._uploads.get(machine.id) is upload:
                    del self._uploads[machine.id]

    @contextmanager
    def _place(self, machine: Machine, who: str) -> Iterator[None]:
        limits = self.limits
        names = {f"site {machine.id.site}": limits.of_one, f"user {who}": limits.of_one, "all": limits.in_all}
        try:
            self._places.take(names)
        except LimitReached as full:
            whose = "in all" if full.name == "all" else f"of {full.name}"
            raise TooMany(
                f"{full.most} history files {whose} are being loaded already. Load this one when they are done.",
                wait=_WAIT_FOR_A_PLACE,
            ) from None
        try:
            yield
        finally:
            self._places.give_back(names)

    def underway(self, machine: Machine) -> "Upload | None":
        """Return the file that this process is loading for a machine, the newest of them, if there is one."""
        return self._uploads.get(machine.id)

    def load(self, machine: Machine, log: ImportFile, upload: "Upload | None" = None) -> ImportResult:
        """Commit what was uploaded, batch by batch, until the machine is let go or the service stops."""

        def look(done: int, lines: int | None) -> None:
            if upload is not None:
                upload.lines_done, upload.lines = done, lines
            if self._stopping:
                raise Unavailable("The service stops. Load the file again; what is stored already stays as it is.")
            self.machines.get(machine.id).require_active()

        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._loading < self.limits.loading)
            self._loading += 1
        try:
            look(0, None)
            return load_history(
                machine,
                log,
                recorder=self.recorder,
                now=self.clock.now(),
                policy=self.policy,
                stored=self.stored,
                progress=look,
            )
        finally:
            with self._changed:
                self._loading -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Let those who load end after the batch at hand, and wait for them: nobody may write after this."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._loading == 0)

    def sweep(self, *, older_than: float = inf) -> None:
        """Delete what uploads left that were cut off by a kill, last written before a moment (Unix time).

        All of it only while nobody uploads.
        """
        for left in stale_files(self.folder, "history-*", older_than=older_than):
            left.unlink(missing_ok=True)


@dataclass
class Upload:
    """A file under way, refused as soon as it is too large; its ``lines`` are known once it is here and whole."""

    file: IO[bytes]
    most_bytes: int
    size: int = 0
    lines_done: int = 0
    lines: int | None = None

    @property
    def path(self) -> Path:
        """Where it lies, all of it written."""
        self.file.flush()
        return Path(self.file.name)

    def write(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.size += len(chunk)
        if self.size > self.most_bytes:
            raise TooLarge(f"A history file may have {self.most_bytes // 1_000_000} MB; load it in parts.")
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
    """Commit a log in batches; its epoch is made from its bytes, so loading it twice changes nothing.

    All of it is read before a row is stored: a file that is broken, of several machines or of another time is
    refused whole. Rows whose time is not believed are counted and left out; loaded again, they may count. An alarm
    that is ``stored`` with the same time and code, by the agent or from another file of the same log, is known.
    """
    epoch, lines = scan(log)
    _require_alarms(log)
    progress(0, lines)
    survey = Survey(log.serial, log.zone, policy.bounds(now))
    for first, block in _blocks(log):
        survey.read(block)
        if first % BATCH < len(block):
            progress(0, lines)
    survey.insist(log.title, policy.retention)
    reading = _ImportReader(machine, log, epoch, policy.bounds(now), EventWrite(to_us(now)))
    reading.loaded = _expected(survey, policy)
    reading.known = KnownAlarms(stored, machine).within(survey.first_us, survey.last_us)
    for first, block in _blocks(log):
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
    """Commit the first event alone: it tells whether the same file was loaded before with other times."""
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
    """Commit and begin the next batch; raise if the machine may not have these events any more."""
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


@dataclass
class _ImportReader:
    """A file under way: the rows that wait for the next commit, and what became of those before."""

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
        refused = self.recording.quarantined
        is_large = sum(len(one.body) for one in refused) >= _QUARANTINE_BYTES
        return len(self.recording.events) >= BATCH or len(refused) >= BATCH or is_large

    def leave_out_known(self) -> None:
        """Count the rows that are stored already, and do not store them a second time."""
        if self.known is not None:
            self.recording.events, known = self.known.split(self.recording.events)
            self.loaded.duplicates += known

    def take(self, first: int, lines: list[str]) -> None:
        """Judge lines, the first of which has this number in its file."""
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
        if len(self.loaded.examples) < _EXAMPLES:
            self.loaded.examples.append(detail)
        self.loaded.rows += 1
        self.recording.quarantined.append(QuarantineRow(self.machine.row_id, topic, "bad_row", detail, body))


def _require_alarms(log: ImportFile) -> None:
    """Refuse a file that is none of alarms before a row of it is stored or quarantined.

    Rows of other machines are alarms too; only the header and what cannot be read are none.
    """
    rows, wrong, number = RowReader(None, log.zone), "", 0
    for number, line in islice(_numbered(log), _GLANCE):
        try:
            if rows.read(line) is not None:
                return
        except RowRejected as error:
            wrong = wrong or f" Line {number}: {error}"
    if not wrong:
        what = "has no row" if number else "is empty"
        raise InputRejected(f"{log.title} {what}; choose a file with a row for every alarm.")
    if kind := other_kind(next(_chunks(log), b"")):
        raise InputRejected(f"{log.title} is no log of alarms: it is {kind}. Nothing was stored.")
    raise InputRejected(
        f"{log.title} is no log of alarms: none of its first {number:,} lines is one. Nothing was stored.{wrong}."
    )


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
        if size > _MOST_UNPACKED or line > _LONGEST_LINE:
            raise InputRejected(f"{log.title} is no log of alarms: it has a line or a size beyond all measure.")
    return uuid5(_HISTORY, digest.hexdigest()), lines + (line > 0)


def _chunks(log: ImportFile) -> Iterator[bytes]:
    with _opened(log) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _numbered(log: ImportFile) -> Iterator[tuple[int, str]]:
    for first, lines in _blocks(log):
        yield from enumerate(lines, start=first)


def _blocks(log: ImportFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a file, some at a time, with the number of the first of them; a header stands alone."""
    with _opened(log) as file:
        number = most = 1
        while lines := [line.decode("utf-8", errors="replace") for line in _some_lines(file, most)]:
            yield number, lines
            number, most = number + len(lines), _BLOCK


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


def _count(loaded: ImportResult, recording: EventWrite, recorded: WriteResult) -> None:
    loaded.stored += recorded.stored
    loaded.duplicates += recorded.duplicates
    loaded.rejected += len(recording.quarantined) + recorded.conflicts
