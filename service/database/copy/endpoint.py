"""The two ends of a copy: how a person names them, and how each is kept from everybody else meanwhile."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import ArgumentError

from service.database.backup import DATABASE
from service.database.engine import Database
from service.database.locks import Advisory, WriterLock
from service.database.restore import finish_restore
from service.errors import DatabaseInUse, InputRejected, Unavailable

_CONNECT_SECONDS = 10
_ENDINGS = {".sqlite3", ".sqlite", ".db"}  # of a file that may not be there yet
_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user"
    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class CopyEndpoint:
    """A database to copy from or into; its ``name`` is fit to be shown."""

    name: str
    database: Database
    folder: Path | None  # of a SQLite file, with its lock beside it
    patience: float  # seconds; PostgreSQL takes a moment to see that a client was killed

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the database to this process, or raise :class:`DatabaseInUse`."""
        with self._alone() if self.folder is None else _locked(self.folder):
            yield

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold a session with a lock of ours, once nobody else works as the same user of PostgreSQL."""
        self._require_reachable()
        with self.database.read() as connection:
            deadline = time.monotonic() + self.patience
            lock = {"key": Advisory.COPY.value}
            while not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), lock).scalar_one():
                self._wait(deadline, "is being copied already, or is FROM and TO at once")
            while others := connection.execute(_OTHERS).scalar_one():
                connection.rollback()  # within a transaction the list of sessions stays as it was first read
                self._wait(deadline, f"is in use: others are connected as the same user ({others})")
            connection.rollback()
            yield

    def _wait(self, deadline: float, trouble: str) -> None:
        if time.monotonic() > deadline:
            raise DatabaseInUse(f"{self.name} {trouble}. Stop the service and whatever else works on it first.")
        time.sleep(0.2)

    def _require_reachable(self) -> None:
        try:
            self.database.ping()
        except Unavailable as error:
            raise Unavailable(f"{self.name} cannot be reached. {' '.join(str(error).split())}") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = WriterLock(folder / "alarmcast.lock")
    try:
        lock.acquire()
    except OSError as error:
        raise InputRejected(f"The folder {folder} cannot be written to: {error.strerror}.") from None
    try:
        finish_restore(folder)
        yield
    finally:
        lock.release()


@contextmanager
def opened(written: str, *, patience: float = 10.0) -> Iterator[CopyEndpoint]:
    """Open a database that a person named: by a URL, or SQLite by its folder or its file."""
    url = _url(written)
    whole = url.render_as_string(hide_password=False)
    database = Database(whole, patience=_CONNECT_SECONDS, stalled=0)  # one end idles while the other one works
    try:
        folder = Path(str(url.database)).parent if database.is_sqlite else None
        yield CopyEndpoint(_shown(url), database, folder, patience)
    finally:
        database.close()


def _url(written: str) -> URL:
    if "://" not in written:
        path = Path(written).resolve()
        file = path if path.is_file() or path.suffix in _ENDINGS else path / DATABASE
        return URL.create("sqlite", database=str(file))
    try:
        url = make_url(written)
    except (ArgumentError, ValueError):
        raise InputRejected(
            "A database cannot be named like this; write a folder, sqlite:////path/to/file or "
            "postgresql+psycopg://user@host/name."
        ) from None
    if url.drivername in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database:
        return url.set(database=str(Path(url.database).resolve()))
    return url


def _shown(url: URL) -> str:
    if url.drivername == "sqlite":
        return str(url.database)
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()
