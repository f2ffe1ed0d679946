"""The limit of whatever stores events: the driver alone, given rows that are ready, same table, same index."""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from service.database.engine import Database

COLUMNS = ("epoch_id", "seq", "machine_id", "code", "at_us", "received_us", "flag")
Row = tuple[Any, ...]


def inserting(rows: Sequence[Row], *, batch: int) -> float:
    """Return the seconds of ``sqlite3.executemany``, every batch committed durably (WAL, synchronous FULL)."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "alarmcast.sqlite3"
        database = Database(f"sqlite:///{file}")
        database.upgrade()
        database.close()
        connection = opened(file)
        started = time.monotonic()
        insert(connection, rows, batch=batch)
        seconds = time.monotonic() - started
        connection.close()
    return seconds


def insert(connection: sqlite3.Connection, rows: Sequence[Row], *, batch: int) -> None:
    """Insert rows of the table of events."""
    marks = ", ".join("?" * len(COLUMNS))
    statement = f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({marks})"  # noqa: S608 - our own names
    for first in range(0, len(rows), batch):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, rows[first : first + batch])
        connection.execute("COMMIT")


def opened(file: Path) -> sqlite3.Connection:
    """Open a database as the service does."""
    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-65536"):
        connection.execute(f"PRAGMA {pragma}")
    return connection
