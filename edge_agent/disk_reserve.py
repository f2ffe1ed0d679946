"""A file that only takes up room: let go on a full disk, so that the spool can still delete and tell."""

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)


class DiskReserve:
    """So many bytes beside the spool; SQLite needs some room even to delete."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size

    def allocate(self) -> bool:
        """Take up the room, if there is any to take; say whether all of it is held."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                os.posix_fallocate(file, 0, self._size)
            finally:
                os.close(file)
        except OSError as error:
            log.debug("no room for the reserve of %d bytes now: %s", self._size, error)
            return False
        return True

    def release(self) -> None:
        """Give the room back."""
        self._path.unlink(missing_ok=True)
