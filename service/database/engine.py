"""Connections: one writer and many readers on SQLite, one pool on PostgreSQL, the same two doors to both."""

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from service.database import schema as schemas
from service.database.backup import keep_copy
from service.database.files import create_private
from service.errors import DatabaseDamaged, InputRejected, Unavailable

if TYPE_CHECKING:  # a service on SQLite never loads it
    import psycopg

log = logging.getLogger(__name__)

BUSY_SECONDS = 30
STALLED_SECONDS = 30
LOCK_SECONDS = 60  # for a lock of somebody else; who stalls has been cut off before
_UNHURRIED_LOCK_SECONDS = 600  # a migration waits for readers, and others for a migration
# Silence of the other end's host, lost by power or by line, is noticed after 25 seconds, by us and by PostgreSQL.
_KEEPALIVES = {"idle": 10, "interval": 5, "count": 3}
_UNACKED_MS = 30_000
_CONNECT_SECONDS = 10  # to one host; a URL may name several
_UNHURRIED = (
    text("SET LOCAL idle_in_transaction_session_timeout = 0"),
    text(f"SET LOCAL lock_timeout = '{_UNHURRIED_LOCK_SECONDS}s'"),
)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WRITER_CACHE_KB = 65_536
_READER_CACHE_KB = 4096  # of each of 20 connections; every commit of the writer empties it
MAX_WAL_BYTES = 64 << 20
_WAL_WAIT_MS = 2000
_WRONG_URL = "The database URL cannot be used; write sqlite:////path/to/file or postgresql+psycopg://…"


class Database:
    """``read()`` and ``write()`` are the only ways in.

    On SQLite all writers of the process queue for one connection, and every write transaction begins
    IMMEDIATE: it never has to be upgraded half-way, which is what "database is locked" is made of. A process
    beside the writer opens the file ``read_only``. A database may take ``patience`` seconds to let us in.

    On PostgreSQL whoever says nothing for ``stalled`` seconds in the middle of a transaction is cut off, so that
    others need not wait for a process that was stopped; 0 is for those who have reason to idle. Nobody waits for
    a lock for more than ``lock_wait`` seconds: that is :class:`Unavailable`, and worth another try.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        patience: int = BUSY_SECONDS,
        stalled: int = STALLED_SECONDS,
        lock_wait: int | None = None,
    ) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise InputRejected(_WRONG_URL) from None
        self.url, self.read_only, self._patience = url, read_only, patience
        self._closed = False
        self.is_sqlite = parsed.drivername == "sqlite" and bool(parsed.database) and parsed.database != ":memory:"
        if not self.is_sqlite and parsed.drivername != "postgresql+psycopg":
            raise InputRejected(_WRONG_URL)
        if self.is_sqlite and read_only:
            # Such a connection never checkpoints, not even as the last one to close: that is the writer's to do.
            file = quote(str(parsed.database))
            self._writer = self._reader = _sqlite_engine(
                f"sqlite:///file:{file}?mode=ro&uri=true",
                writes=False,
                connections=2,
                patience=patience,
                read_only=True,
            )
        elif self.is_sqlite:
            self._writer = _sqlite_engine(url, writes=True, connections=1, patience=patience)
            self._reader = _sqlite_engine(url, writes=False, connections=20, patience=patience)
        else:
            if lock_wait is None:
                lock_wait = LOCK_SECONDS if stalled else _UNHURRIED_LOCK_SECONDS
            timeouts = {
                "idle_in_transaction_session_timeout": f"{stalled}s",
                "lock_timeout": f"{lock_wait}s",
            }
            self._writer = self._reader = _postgresql_engine(url, patience=patience, timeouts=timeouts)

    @property
    def exists(self) -> bool:
        """Whether there is a SQLite file yet; PostgreSQL says so itself when it is asked."""
        return not self.is_sqlite or Path(str(make_url(self.url).database)).exists()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection for queries; on SQLite each of them sees the state of its own moment."""
        self._require_open()
        with _translated(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self, *, unhurried: bool = False) -> Iterator[Connection]:
        """Yield a connection whose changes are committed together, durably, or not at all.

        Who is ``unhurried`` may think for as long as they like between two statements, and waits longer for locks.
        """
        self._require_open()
        with _translated(), self._writer.begin() as connection:
            if unhurried and not self.is_sqlite:
                for statement in _UNHURRIED:
                    connection.execute(statement)
            yield connection

    def schema(self, scripts: Path | None = None) -> schemas.Schema:
        """Return which schema the database has and which this version wants."""
        with self.read() as connection:
            return schemas.read_schema(connection, scripts)

    def upgrade(self, scripts: Path | None = None) -> None:
        """Bring the schema to this version's; an empty database gets all of it, one of others is refused.

        Of a SQLite file that will be changed a copy is kept beside it.
        """
        found = self.schema(scripts)
        if found.is_current:
            return
        if self.is_sqlite and found.found is not None:
            keep_copy(Path(str(make_url(self.url).database)), found.found)
        with self._rebuilding() as connection:
            schemas.migrate(connection, scripts=scripts)
        log.info("the database has schema %s now; it had %s", found.wanted, found.found or "none")

    @contextmanager
    def _rebuilding(self) -> Iterator[Connection]:
        """Yield a write transaction in which tables may be rebuilt under the rows that refer to them.

        SQLite changes a table by dropping the old one, which it refuses, or lets cascade, while foreign keys are
        on; the switch works only outside of a transaction, so every key is checked before the end of this one.
        """
        if not self.is_sqlite:
            with self.write(unhurried=True) as connection:
                yield connection
            return
        with _translated(), self._writer.connect() as connection:
            switch = cast("sqlite3.Connection", connection.connection.driver_connection)
            switch.execute("PRAGMA foreign_keys=OFF")
            try:
                with connection.begin():
                    yield connection
                    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                    if broken:
                        raise DatabaseDamaged(is_corrupt(f"a row of {broken[0][0]} refers to nothing"))
            finally:
                switch.execute("PRAGMA foreign_keys=ON")

    def check(self, *, thorough: bool = False) -> None:
        """Read a SQLite file through and raise :class:`DatabaseDamaged` if it is; PostgreSQL checks itself."""
        if not self.is_sqlite:
            return
        pragma = "integrity_check" if thorough else "quick_check"
        with _translated(), self._writer.connect() as connection:
            found = connection.exec_driver_sql(f"PRAGMA {pragma}(1)").scalar_one()
        if found != "ok":
            raise DatabaseDamaged(is_corrupt(str(found)))

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("The database is closed, because the service stops.")

    def raw_connection(self) -> "psycopg.Connection[Any]":
        """Return a connection of PostgreSQL's own driver that is the caller's alone, and to be closed by them."""
        self._require_open()
        with _translated():
            fairy = self._writer.raw_connection()
        driver = cast("psycopg.Connection[Any]", fairy.driver_connection)
        fairy.detach()
        return driver

    def truncate_wal(self, above: int = MAX_WAL_BYTES) -> bool:
        """Empty a SQLite write-ahead log that has grown beyond a size; return whether that was done.

        SQLite begins it anew only at a moment without readers, and a busy service may have none. Writers wait
        meanwhile, for two seconds at most.
        """
        wal = Path(f"{make_url(self.url).database}-wal")
        if not self.is_sqlite or not wal.exists() or wal.stat().st_size <= above:
            return False
        with _translated(), closing(self._writer.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout={_WAL_WAIT_MS}")
            try:
                (was_busy, _, _) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                cursor.execute(f"PRAGMA busy_timeout={1000 * self._patience}")
                cursor.close()
        return not was_busy

    def ping(self) -> float:
        """Return the seconds a trivial query takes; raises :class:`Unavailable` if it fails."""
        started = time.perf_counter()
        with self.read() as connection:
            connection.execute(text("SELECT 1"))
        return time.perf_counter() - started

    def close(self) -> None:
        """Give all connections back; from now on there are no others."""
        self._closed = True
        self._writer.dispose()
        self._reader.dispose()


def is_corrupt(what: str) -> str:
    """Say what a person can do about a damaged file."""
    return (
        f"The database is damaged: {' '.join(what.split())}. Stop the service, bring back the last backup with "
        "`alarmcast admin restore FOLDER` (the damaged file is put aside), and look after the disk. Agents keep "
        "what is not acked yet."
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except NoneFree as error:
        raise Unavailable("All connections to the database are in use; none was given back in time.") from error
    except OperationalError as error:
        raise Unavailable(f"The database does not answer as it should: {error.orig}.") from error
    except DBAPIError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            raise DatabaseDamaged(is_corrupt(str(error.orig))) from error
        if error.connection_invalidated:
            raise Unavailable(f"The connection to the database was lost: {error.orig}.") from error
        raise


def _postgresql_engine(url: str, *, patience: int, timeouts: Mapping[str, str]) -> Engine:
    ours = {
        "connect_timeout": min(patience, _CONNECT_SECONDS),
        "tcp_user_timeout": _UNACKED_MS,
        **{f"keepalives_{name}": value for name, value in _KEEPALIVES.items()},
    }
    engine = create_engine(
        url,
        pool_size=10,
        max_overflow=20,
        pool_timeout=patience,
        pool_pre_ping=True,
        connect_args={name: value for name, value in ours.items() if name not in make_url(url).query},
        hide_parameters=True,  # an error names the statement; what it carried may be secret
    )
    theirs = {
        **timeouts,
        "tcp_user_timeout": f"{_UNACKED_MS}ms",
        **{f"tcp_keepalives_{name}": str(value) for name, value in _KEEPALIVES.items()},
    }

    @event.listens_for(engine, "connect")
    def prepare(connection: "psycopg.Connection[Any]", _record: object) -> None:
        # Not as options of the connection, which a pooler in between may refuse.
        connection.autocommit = True
        connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in theirs.items()).encode())
        connection.autocommit = False

    return engine


def _sqlite_engine(url: str, *, writes: bool, connections: int, patience: int, read_only: bool = False) -> Engine:
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=patience,
        connect_args={"timeout": patience, "check_same_thread": False},
        hide_parameters=True,
    )

    if not read_only:

        @event.listens_for(engine, "do_connect")
        def create(*_: object) -> None:
            with suppress(OSError):  # SQLite says it in its own words
                create_private(Path(str(engine.url.database)))

    @event.listens_for(engine, "connect")
    def prepare(connection: object, _record: object) -> None:
        connection.isolation_level = None  # type: ignore[attr-defined]  # we say BEGIN ourselves
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
        def say_begin(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
