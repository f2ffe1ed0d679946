"""Source or target of a database copy: parsing its name and locking it against other processes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import ArgumentError

from service.database.backup import DATABASE, finish_restore
from service.database.engine import Database
from service.database.locks import Advisory, WriterLock
from service.errors import DatabaseInUse, InputRejected, Unavailable

_CONNECT_TIMEOUT_S = 10
_ENDINGS = {".sqlite3", ".sqlite", ".db"}  # of a file that may not exist yet
_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user"
    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class CopyEndpoint:
    """A database to copy from or into; ``name`` contains no password."""

    name: str
    database: Database
    folder: Path | None  # of a SQLite file and its lock
    lock_timeout_s: float  # PostgreSQL notices a killed client after a moment

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the database against other processes, or raise :class:`DatabaseInUse`."""
        with self._exclusive() if self.folder is None else _locked(self.folder):
            yield

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold an advisory lock while no other session of the same PostgreSQL user is connected."""
        self._require_reachable()
        with self.database.read() as connection:
            deadline = time.monotonic() + self.lock_timeout_s
            lock = {"key": Advisory.COPY.value}
            while not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), lock).scalar_one():
                self._wait(deadline, "is being copied already, or is both FROM and TO")
            while others := connection.execute(_OTHERS).scalar_one():
                connection.rollback()  # within a transaction the list of sessions does not change
                self._wait(deadline, f"is in use: others are connected as the same user ({others})")
            connection.rollback()
            yield

    def _wait(self, deadline: float, reason: str) -> None:
        if time.monotonic() > deadline:
            raise DatabaseInUse(
                f"{self.name} {reason}. Stop the service and all other programs that use it first."
            )
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
def open_endpoint(name: str, *, lock_timeout_s: float = 10.0) -> Iterator[CopyEndpoint]:
    """Open a database given as a URL, or as the folder or file of SQLite."""
    url = _url(name)
    # No idle timeout: one end waits while the other works.
    database = Database(
        url.render_as_string(hide_password=False), busy_timeout_s=_CONNECT_TIMEOUT_S, idle_timeout_s=0
    )
    try:
        folder = Path(str(url.database)).parent if database.is_sqlite else None
        yield CopyEndpoint(_without_password(url), database, folder, lock_timeout_s)
    finally:
        database.close()


def _url(name: str) -> URL:
    if "://" not in name:
        path = Path(name).resolve()
        file = path if path.is_file() or path.suffix in _ENDINGS else path / DATABASE
        return URL.create("sqlite", database=str(file))
    try:
        url = make_url(name)
    except (ArgumentError, ValueError):
        raise InputRejected(
            "This is not a database name; use a folder, sqlite:////path/to/file or "
            "postgresql+psycopg://user@host/name."
        ) from None
    if url.drivername in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database:
        return url.set(database=str(Path(url.database).resolve()))
    return url


def _without_password(url: URL) -> str:
    if url.drivername == "sqlite":
        return str(url.database)
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()
