"""The open store in its parts, one writer at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from service.bootstrap.configuration import sqlite_url
from service.errors import InputRejected
from service.settings import IntegrityCheck, Settings
from service.store.audit import AuditStore
from service.store.backup import DATABASE
from service.store.catalogue import CatalogueStore
from service.store.engine import Database
from service.store.enrolments import EnrolmentStore
from service.store.events import EventStore
from service.store.exams import HoldoutStore
from service.store.files import close_to_others, make_private_folder
from service.store.forecasts import ForecastStore
from service.store.jobs import JobStore
from service.store.lock import WriterLock
from service.store.machines import MachineStore
from service.store.memories import MemoryStore
from service.store.outcomes import OutcomeStore
from service.store.restore import finish_restore
from service.store.updates import UpdateStore
from service.store.versions import VersionStore
from service.store.weights import WeightsFolder


@dataclass(frozen=True)
class Stores:
    """The open store, in its parts."""

    database: Database
    machines: MachineStore
    events: EventStore
    catalogue: CatalogueStore
    versions: VersionStore
    forecasts: ForecastStore
    jobs: JobStore
    enrolments: EnrolmentStore
    exams: HoldoutStore
    memories: MemoryStore
    updates: UpdateStore
    audit: AuditStore
    lock: WriterLock
    outcomes: OutcomeStore


@contextmanager
def open_stores(settings: Settings, *, check: bool = False) -> Iterator[Stores]:
    """Open the store for writing, its schema brought up to date; on SQLite this process is then the writer.

    With ``check`` the file is read through first, and a damaged one is refused with the way back.
    """
    try:
        make_private_folder(settings.data_dir)
    except OSError as error:
        raise InputRejected(
            f"Cannot make the folder {settings.data_dir}: {error.strerror}. Choose another."
        ) from None
    database = Database(settings.database_url or sqlite_url(settings.data_dir))
    lock = WriterLock(settings.data_dir / "alarmcast.lock")
    if database.is_sqlite:
        lock.acquire()
    try:
        if settings.database_url is None:
            finish_restore(settings.data_dir)
            for file in settings.data_dir.glob(f"{DATABASE}*"):  # an older version may have left them open to all
                close_to_others(file)
        if check and settings.integrity_check is not IntegrityCheck.OFF:
            database.check(thorough=settings.integrity_check is IntegrityCheck.FULL)
        database.upgrade()
        weights = WeightsFolder(settings.data_dir / "weights")
        yield Stores(
            database,
            MachineStore(database),
            EventStore(database),
            CatalogueStore(database),
            VersionStore(database, weights),
            ForecastStore(database),
            JobStore(database),
            EnrolmentStore(database),
            HoldoutStore(database),
            MemoryStore(database),
            UpdateStore(database, weights),
            AuditStore(database),
            lock,
            OutcomeStore(database),
        )
    finally:
        database.close()
        lock.release()
