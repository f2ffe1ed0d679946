"""A preallocated file, deleted on a full disk so that the spool can still delete events."""

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)


class DiskReserve:
    """Reserves disk space beside the spool; SQLite needs some even to delete."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size

    def allocate(self) -> bool:
        """Allocate the space; return whether all of it is reserved."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file, 0, self._size)
                else:
                    os.ftruncate(file, self._size)  # NTFS allocates it
            finally:
                os.close(file)
        except OSError as error:
            log.debug("no room for the reserve of %d bytes now: %s", self._size, error)
            return False
        return True

    def release(self) -> None:
        """Free the space."""
        self._path.unlink(missing_ok=True)
