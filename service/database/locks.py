"""Locks: one writing process per SQLite file, and advisory locks of PostgreSQL."""

import fcntl
import json
import os
from enum import IntEnum, unique
from pathlib import Path
from types import TracebackType
from typing import Self

from service.database.files import make_private_folder
from service.errors import DatabaseInUse


class WriterLock:
    """File lock of the process that writes to a SQLite database; the kernel releases it when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> Self:
        """Take the lock, or raise :class:`DatabaseInUse` with the address of its holder."""
        make_private_folder(self._path.parent)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _read(file)
            os.close(file)
            message = (
                f"Process {holder.get('pid', '?')} already uses the database in {self._path.parent}. "
                "On SQLite one process writes; stop that one first."
            )
            raise DatabaseInUse(message, holder.get("url"), holder.get("certificate")) from None
        self._file = file
        self.write_address(None)
        return self

    def write_address(self, url: str | None, certificate: Path | None = None) -> None:
        """Write the URL and certificate of the holder's API into the lock file."""
        if self._file is not None:
            shown = None if certificate is None else str(certificate.resolve())
            note = json.dumps({"pid": os.getpid(), "url": url, "certificate": shown}).encode()
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, note, 0)

    def release(self) -> None:
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _read(file: int) -> dict[str, str]:
    try:
        note = json.loads(os.pread(file, 4096, 0) or b"{}")
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


@unique
class Advisory(IntEnum):
    """Keys of PostgreSQL's advisory locks; they must not change between versions."""

    SCHEMA = 7_311_641  # schema upgrade
    MONTHS = 7_311_642  # creation of partitions
    JOBS = 7_311_643  # choice of the next job
    COPY = 7_311_644  # database copy
    SCORING = 0x414C_4152  # shared by commits of events, exclusive for scoring
    CREDENTIALS = 0x4352_4544  # changes of broker and database
