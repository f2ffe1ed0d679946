"""The spool's file: its lock, its bound, its transactions."""

import os
import shutil
import sqlite3
from pathlib import Path

from edge_agent.file_lock import try_lock

_SMALLEST = 32 * 4096  # bytes


class Transaction:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK if anything is raised."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:  # a full disk may have rolled back already
                self._db.execute("ROLLBACK")


def bound(folder: Path, most: int) -> int:
    """Return how many bytes the spool may take: as many as it is allowed, but at most half of its disk."""
    return max(_SMALLEST, min(most, shutil.disk_usage(folder).total // 2))


def is_full(error: sqlite3.OperationalError) -> bool:
    """Say whether an error means that the disk, or the bound of the file, has no room."""
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def exclusive(path: Path) -> int:
    """Lock the spool for this agent; the kernel lets go when the agent dies, however it dies."""
    guard = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if not try_lock(guard):
        os.close(guard)
        raise OSError("another agent is using it")
    return guard
