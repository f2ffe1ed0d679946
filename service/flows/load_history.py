"""A machine's past in bulk: a log file to committed events, judged row by row like live ones."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO
from uuid import UUID, uuid5

from service.core.machine import Machine
from service.core.recording import IN_TIME, EventRow, Quarantined, Recorded, Recording
from service.errors import InputRejected, TooLarge
from service.flows.ports import Recorder
from service.flows.record_events import TimePolicy
from wire.clock import PlantClock
from wire.log_rows import RowReader, RowRejected
from wire.micros import micros

_BATCH = 10_000
_GZIP = b"\x1f\x8b"
_HISTORY = UUID("6f0f5a0e-3f0b-4a57-9d1c-6a2f0a4c7d11")  # namespace of the epochs of history files


@dataclass(frozen=True)
class LogFile:
    """A file of alarms: whose rows to take from it, and the zone of timestamps that name none."""

    path: Path
    serial: str | None = None
    zone: tzinfo = UTC
    name: str | None = None


@dataclass
class Loaded:
    """What became of a file's rows."""

    stored: int = 0
    duplicates: int = 0
    flagged: int = 0
    rejected: int = 0
    last_us: int | None = None


@dataclass(frozen=True)
class HistoryLoader:
    """Takes a machine's past while the service runs: first to a file, because its epoch is made from its bytes."""

    recorder: Recorder
    clock: PlantClock
    policy: TimePolicy
    folder: Path
    most_bytes: int

    @contextmanager
    def upload(self) -> Iterator["Upload"]:
        """Yield a file to write to that is gone afterwards."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=self.folder, prefix="history-") as file:
            yield Upload(file, self.most_bytes)

    def load(self, machine: Machine, log: LogFile) -> Loaded:
        """Commit what was uploaded, batch by batch."""
        return load_history(machine, log, recorder=self.recorder, now=self.clock.now(), policy=self.policy)


@dataclass
class Upload:
    """A file under way, refused as soon as it is too large."""

    file: IO[bytes]
    most_bytes: int
    size: int = 0

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
    log: LogFile,
    *,
    recorder: Recorder,
    now: datetime,
    policy: TimePolicy,
    progress: Callable[[int], None] = lambda _rows: None,
) -> Loaded:
    """Commit a log in batches; its epoch is made from its bytes, so loading it twice changes nothing."""
    epoch = file_epoch(log.path)
    rows = RowReader(log.serial, log.zone)
    judge = policy.judge(now)
    loaded = Loaded()
    recording = Recording(micros(now))

    def commit() -> None:
        nonlocal recording
        _count(loaded, recording, recorder.commit(recording))
        recording = Recording(micros(now))

    for number, line in _lines(log.path):
        try:
            alarm = rows.read(line)
        except RowRejected as error:
            topic, body = f"history:{log.name or log.path.name}"[:1000], line.encode()[:64_000]
            detail = f"line {number}: {error}"
            recording.quarantined.append(Quarantined(machine.row, topic, "bad_row", detail, body))
            alarm = None
        if alarm is not None:
            at_us = micros(alarm.at)
            recording.events.append(EventRow(machine.row, epoch, number, alarm.code, at_us, judge(at_us)))
        if len(recording.events) >= _BATCH or len(recording.quarantined) >= _BATCH:
            commit()
            progress(number)
    commit()
    return loaded


def file_epoch(file: Path) -> UUID:
    """Return the epoch of a history file: the same bytes, the same epoch."""
    digest = sha256()
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise InputRejected(f"Cannot read {file}: {error.strerror}.") from None
    return uuid5(_HISTORY, digest.hexdigest())


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open("rb") as start:
            opener = gzip.open if start.read(2) == _GZIP else open
        with opener(file, "rt", encoding="utf-8", errors="replace") as lines:
            yield from enumerate(lines, start=1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputRejected(f"Cannot read {file}: {error}.") from None


def _count(loaded: Loaded, recording: Recording, recorded: Recorded) -> None:
    loaded.stored += recorded.stored
    loaded.duplicates += recorded.duplicates
    loaded.flagged += sum(row.flag != IN_TIME for row in recording.events)
    loaded.rejected += len(recording.quarantined) + recorded.conflicts
    times = [row.at_us for row in recording.events]
    loaded.last_us = max([*times, loaded.last_us or times[0]]) if times else loaded.last_us
