"""Database connections: one writer and many readers on SQLite, one pool on PostgreSQL."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.database import schema as schemas
from service.database.backup import keep_copy
from service.database.files import create_private
from service.errors import DatabaseDamaged, InputRejected, Unavailable

if TYPE_CHECKING:  # not loaded on SQLite
    import psycopg

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 30
IDLE_TIMEOUT_S = 30
LOCK_TIMEOUT_S = 60  # longer than the idle timeout, which ends stalled transactions
_LONG_LOCK_TIMEOUT_S = 600  # a migration waits for readers, and others for a migration
# A lost host or connection is detected after 25 seconds, on both sides.
_KEEPALIVES = {"idle": 10, "interval": 5, "count": 3}
_UNACKED_MS = 30_000
_CONNECT_TIMEOUT_S = 10  # per host; a URL may name several
_NO_TIMEOUT = (
    text("SET LOCAL idle_in_transaction_session_timeout = 0"),
    text(f"SET LOCAL lock_timeout = '{_LONG_LOCK_TIMEOUT_S}s'"),
)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WRITER_CACHE_KB = 65_536
_READER_CACHE_KB = 4096  # per reader; invalidated by every commit
MAX_WAL_BYTES = 64 << 20
_WAL_WAIT_MS = 2000
_READER_WAIT_S = 5.0  # for readers to end before the log is truncated, and for new ones until it is
_WRONG_URL = "The database URL is not supported; use sqlite:////path/to/file or postgresql+psycopg://…"


class _ReaderGate:
    """Counts the readers of this process and holds new ones back for a moment."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._active, self._held = 0, False

    @contextmanager
    def reader(self) -> Iterator[None]:
        """Count one reader; while the gate is held it waits, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held, _READER_WAIT_S)
            self._active += 1
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold new readers back, and wait for the active ones to end, but not for long."""
        with self._changed:
            self._held = True
            self._changed.wait_for(lambda: not self._active, _READER_WAIT_S)
        try:
            yield
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()


class Database:
    """Access to the database through ``read()`` and ``write()``.

    On SQLite all writers of the process share one connection, and write transactions begin IMMEDIATE, which avoids
    "database is locked" errors of upgraded transactions. Other processes open the file ``read_only``.
    ``busy_timeout_s`` limits the wait for a connection.

    On PostgreSQL a transaction that is idle for ``idle_timeout_s`` is ended, so that a stopped process blocks no
    others; 0 disables this. A lock that takes more than ``lock_timeout_s`` raises :class:`Unavailable`.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        busy_timeout_s: int = BUSY_TIMEOUT_S,
        idle_timeout_s: int = IDLE_TIMEOUT_S,
        lock_timeout_s: int | None = None,
    ) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise InputRejected(_WRONG_URL) from None
        self.url, self.read_only, self._busy_timeout_s = url, read_only, busy_timeout_s
        self._closed, self._gate = False, _ReaderGate()
        self.is_sqlite = parsed.drivername == "sqlite" and bool(parsed.database) and parsed.database != ":memory:"
        if not self.is_sqlite and parsed.drivername != "postgresql+psycopg":
            raise InputRejected(_WRONG_URL)
        if self.is_sqlite and read_only:
            # A read-only connection never checkpoints; the writer does.
            file = quote(str(parsed.database))
            self._writer = self._reader = _sqlite_engine(
                f"sqlite:///file:{file}?mode=ro&uri=true",
                writes=False,
                connections=2,
                busy_timeout_s=busy_timeout_s,
                read_only=True,
            )
        elif self.is_sqlite:
            self._writer = _sqlite_engine(url, writes=True, connections=1, busy_timeout_s=busy_timeout_s)
            self._reader = _sqlite_engine(url, writes=False, connections=20, busy_timeout_s=busy_timeout_s)
        else:
            if lock_timeout_s is None:
                lock_timeout_s = LOCK_TIMEOUT_S if idle_timeout_s else _LONG_LOCK_TIMEOUT_S
            timeouts = {
                "idle_in_transaction_session_timeout": f"{idle_timeout_s}s",
                "lock_timeout": f"{lock_timeout_s}s",
            }
            self._writer = self._reader = _postgresql_engine(url, busy_timeout_s=busy_timeout_s, timeouts=timeouts)

    @property
    def exists(self) -> bool:
        """Whether the SQLite file exists; always true for PostgreSQL."""
        return not self.is_sqlite or Path(str(make_url(self.url).database)).exists()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection for queries; on SQLite each query has its own snapshot."""
        self._require_open()
        with _translated(), self._gate.reader(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self, *, no_timeout: bool = False) -> Iterator[Connection]:
        """Yield a connection in a durable transaction; ``no_timeout`` allows idle time and long lock waits."""
        self._require_open()
        with _translated(), self._writer.begin() as connection:
            if no_timeout and not self.is_sqlite:
                for statement in _NO_TIMEOUT:
                    connection.execute(statement)
            yield connection

    def schema(self, scripts: Path | None = None) -> schemas.Schema:
        """Return the schema of the database and that of this version."""
        with self.read() as connection:
            return schemas.read_schema(connection, scripts)

    def upgrade(self, scripts: Path | None = None) -> None:
        """Upgrade the schema to this version's, or create it; a database of another program is rejected.

        A SQLite file is copied before it is changed.
        """
        found = self.schema(scripts)
        if found.is_current:
            return
        if self.is_sqlite and found.found is not None:
            keep_copy(Path(str(make_url(self.url).database)), found.found)
        with self._rebuilding() as connection:
            schemas.migrate(connection, scripts=scripts)
        log.info("upgraded the database to schema %s from %s", found.wanted, found.found or "none")

    @contextmanager
    def _rebuilding(self) -> Iterator[Connection]:
        """Yield a write transaction in which referenced tables may be rebuilt.

        SQLite changes a table by dropping it, which foreign keys prevent. They can be disabled only outside of a
        transaction, so all keys are checked before the commit.
        """
        if not self.is_sqlite:
            with self.write(no_timeout=True) as connection:
                yield connection
            return
        with _translated(), self._writer.connect() as connection:
            driver = cast("sqlite3.Connection", connection.connection.driver_connection)
            driver.execute("PRAGMA foreign_keys=OFF")
            try:
                with connection.begin():
                    yield connection
                    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                    if broken:
                        raise DatabaseDamaged(_damage_message(f"a row of {broken[0][0]} refers to nothing"))
            finally:
                driver.execute("PRAGMA foreign_keys=ON")

    def check(self, *, thorough: bool = False) -> None:
        """Check a SQLite file and raise :class:`DatabaseDamaged`; PostgreSQL checks itself."""
        if not self.is_sqlite:
            return
        pragma = "integrity_check" if thorough else "quick_check"
        with _translated(), self._writer.connect() as connection:
            found = connection.exec_driver_sql(f"PRAGMA {pragma}(1)").scalar_one()
        if found != "ok":
            raise DatabaseDamaged(_damage_message(str(found)))

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("The database is closed because the service is stopping.")

    def raw_connection(self) -> "psycopg.Connection[Any]":
        """Return a psycopg connection outside of the pool; the caller closes it."""
        self._require_open()
        with _translated():
            fairy = self._writer.raw_connection()
        driver = cast("psycopg.Connection[Any]", fairy.driver_connection)
        fairy.detach()
        return driver

    def truncate_wal(self, above: int = MAX_WAL_BYTES) -> bool:
        """Truncate a SQLite write-ahead log above a size; return whether it was truncated.

        SQLite restarts the log only when there are no readers, and with overlapping readers it would grow without
        limit. So new readers wait until those that are active have ended; writers wait at most two seconds.
        """
        wal = Path(f"{make_url(self.url).database}-wal")
        if not self.is_sqlite or not wal.exists() or wal.stat().st_size <= above:
            return False
        with self._gate.held(), _translated(), closing(self._writer.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout={_WAL_WAIT_MS}")
            try:
                (was_busy, _, _) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                cursor.execute(f"PRAGMA busy_timeout={1000 * self._busy_timeout_s}")
                cursor.close()
        return not was_busy

    def ping(self) -> float:
        """Return the duration of a trivial query in seconds, or raise :class:`Unavailable`."""
        started = time.perf_counter()
        with self.read() as connection:
            connection.execute(text("SELECT 1"))
        return time.perf_counter() - started

    def close(self) -> None:
        """Close all connections; later calls raise :class:`Unavailable`."""
        self._closed = True
        self._writer.dispose()
        self._reader.dispose()


def _damage_message(reason: str) -> str:
    return (
        f"The database is damaged: {' '.join(reason.split())}. Stop the service, restore the last backup with "
        "`alarmcast admin restore FOLDER` (the damaged file is moved aside), and check the disk. Agents keep "
        "all alarms that are not acked."
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as error:
        raise Unavailable("All database connections are in use.") from error
    except OperationalError as error:
        reason = " ".join(str(error.orig).split())
        if error.statement is None:  # while connecting
            raise Unavailable(f"The database does not answer: {reason}") from error
        raise Unavailable(f"The database returned an error: {reason}.") from error
    except DBAPIError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            raise DatabaseDamaged(_damage_message(str(error.orig))) from error
        if error.connection_invalidated:
            raise Unavailable(f"The connection to the database was lost: {error.orig}.") from error
        raise


def _postgresql_engine(url: str, *, busy_timeout_s: int, timeouts: Mapping[str, str]) -> Engine:
    ours = {
        "connect_timeout": min(busy_timeout_s, _CONNECT_TIMEOUT_S),
        "tcp_user_timeout": _UNACKED_MS,
        **{f"keepalives_{name}": value for name, value in _KEEPALIVES.items()},
    }
    engine = create_engine(
        url,
        pool_size=10,
        max_overflow=20,
        pool_timeout=busy_timeout_s,
        pool_pre_ping=True,
        connect_args={name: value for name, value in ours.items() if name not in make_url(url).query},
        hide_parameters=True,  # values may be secret
    )
    theirs = {
        **timeouts,
        "tcp_user_timeout": f"{_UNACKED_MS}ms",
        **{f"tcp_keepalives_{name}": str(value) for name, value in _KEEPALIVES.items()},
    }

    @event.listens_for(engine, "connect")
    def prepare(connection: "psycopg.Connection[Any]", _record: object) -> None:
        # Not as connection options, which a pooler may reject.
        connection.autocommit = True
        connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in theirs.items()).encode())
        connection.autocommit = False

    return engine


def _sqlite_engine(
    url: str, *, writes: bool, connections: int, busy_timeout_s: int, read_only: bool = False
) -> Engine:
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=busy_timeout_s,
        connect_args={"timeout": busy_timeout_s, "check_same_thread": False},
        hide_parameters=True,
    )

    if not read_only:

        @event.listens_for(engine, "do_connect")
        def create(*_: object) -> None:
            with suppress(OSError):  # SQLite reports it
                create_private(Path(str(engine.url.database)))

    @event.listens_for(engine, "connect")
    def prepare(connection: object, _record: object) -> None:
        connection.isolation_level = None  # type: ignore[attr-defined]  # BEGIN is explicit
        cursor = connection.cursor()  # type: ignore[attr-defined]
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA cache_size=-{_WRITER_CACHE_KB if writes else _READER_CACHE_KB}")
        if not writes:
            cursor.execute("PRAGMA query_only=ON")
        cursor.close()

    if writes:

        @event.listens_for(engine, "begin")
        def begin_immediate(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
