"""History files on their way: received, limited in size and number, then previewed or imported."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Condition
from typing import IO

from service.database.files import stale_files
from service.errors import TooLarge, TooMany, Unavailable
from service.http.rate_limit import ConcurrencyLimit, LimitReached
from service.ingest.service import TimePolicy
from service.learning.history_file import ImportFile
from service.learning.history_import import ImportResult, load_history
from service.learning.history_preview import preview_history
from service.machines.event_store import EventStore
from service.machines.events import EventWriter
from service.machines.models import Machine
from service.machines.store import MachineStore
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.rest.histories import HistoryPreview

_RETRY_AFTER_S = 30.0


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
        with self.receive(machine.id.site, who) as upload:
            self._uploads[machine.id] = upload
            try:
                yield upload
            finally:
                if self._uploads.get(machine.id) is upload:
                    del self._uploads[machine.id]

    @contextmanager
    def receive(self, site: str, who: str) -> Iterator["Upload"]:
        """Yield a temporary file to write to, which is for no machine yet."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._slot(site, who), NamedTemporaryFile(dir=self.folder, prefix="history-") as file:
            yield Upload(file, self.max_bytes)

    @contextmanager
    def _slot(self, site: str, who: str) -> Iterator[None]:
        limits = self.limits
        names = {
            f"site {site}": limits.per_owner,
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
            self._require_running()
            self.machines.get(machine.id).require_active()

        with self._turn():
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

    def preview(self, log: ImportFile) -> HistoryPreview:
        """Return what a file holds; nothing is stored."""
        with self._turn():
            return preview_history(log, now=self.clock.now(), policy=self.policy, progress=self._require_running)

    def _require_running(self) -> None:
        if self._stopping:
            raise Unavailable("The service stops. Load the file again; what is stored already stays as it is.")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until few enough files are being read."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._loading < self.limits.loading)
            self._loading += 1
        try:
            self._require_running()
            yield
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
