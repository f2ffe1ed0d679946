"""The open store in its parts, one writer at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.app.configuration import sqlite_url
from service.auth.audit_store import AuditStore
from service.database.backup import DATABASE, finish_restore
from service.database.engine import Database
from service.database.files import close_to_others, make_private_folder
from service.database.locks import WriterLock
from service.database.weight_files import WeightsFolder
from service.errors import InputRejected
from service.forecasts.store import ForecastStore
from service.forecasts.version_store import VersionStore
from service.learning.commit_store import UpdateStore
from service.learning.enrolment_store import EnrolmentStore
from service.learning.evaluation_store import HoldoutStore
from service.learning.job_store import JobStore
from service.learning.memory_store import MemoryStore
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.store import MachineStore
from service.scoring.store import OutcomeStore
from service.settings import IntegrityCheck, Settings


class Stores:
    """The open database and its stores."""

    def __init__(self, database: Database, weights: WeightsFolder, lock: WriterLock) -> None:
        self.database, self.lock = database, lock
        self.machines = MachineStore(database)
        self.events = EventStore(database)
        self.catalogue = CatalogueStore(database)
        self.versions = VersionStore(database, weights)
        self.forecasts = ForecastStore(database)
        self.outcomes = OutcomeStore(database)
        self.jobs = JobStore(database)
        self.enrolments = EnrolmentStore(database)
        self.exams = HoldoutStore(database)
        self.memories = MemoryStore(database)
        self.updates = UpdateStore(database, weights)
        self.audit = AuditStore(database)


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
        yield Stores(database, WeightsFolder(settings.data_dir / "weights"), lock)
    finally:
        database.close()
        lock.release()
