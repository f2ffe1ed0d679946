"""Where reading of a log stands, and how that place is found again after the file was renamed, copied or cut."""

import base64
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

_HEAD, _BEFORE = 512, 256  # bytes kept of the file's beginning, and of what was read last
_LEAST = 32  # bytes that are enough to be found elsewhere in a file
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Place:
    """A file, how far it was read, and enough of its content to know it again.

    The inode finds a file that was renamed. The first bytes and those just before the offset find a copy, and
    show whether a file of the same inode was cut and has grown again.
    """

    inode: int
    offset: int
    head_bytes: int = 0  # an older agent kept a digest of these instead of the bytes themselves
    head_digest: str = ""
    head: str = ""
    before: str = ""
    mtime_ns: int = 0
    last_us: int | None = None  # the time of the last alarm that was read

    @classmethod
    def of(cls, file: BinaryIO, offset: int, last_us: int | None) -> "Place":
        """Return the place at an offset of an open file."""
        stat, number = os.fstat(file.fileno()), file.fileno()
        head = os.pread(number, min(offset, _HEAD), 0)
        before = os.pread(number, min(offset, _BEFORE), max(0, offset - _BEFORE))
        return cls(
            stat.st_ino,
            offset,
            head=base64.b64encode(head).decode(),
            before=base64.b64encode(before).decode(),
            mtime_ns=stat.st_mtime_ns,
            last_us=last_us,
        )

    @classmethod
    def read(cls, bookmark: str) -> "Place":
        """Return the place that a bookmark names."""
        return cls(**json.loads(bookmark))

    def write(self) -> str:
        """Return the place as a bookmark."""
        needed = ("inode", "offset")
        return json.dumps({name: value for name, value in asdict(self).items() if value or name in needed})

    def is_in(self, file: BinaryIO) -> bool:
        """Say whether a file holds this very place: all that is known of what was read is there."""
        if os.fstat(file.fileno()).st_size < self.offset or not self._begins(file, self.offset):
            return False
        before = base64.b64decode(self.before)
        if not self.head_digest and len(before) < min(self.offset, _BEFORE):
            return False  # the file was cut while its bytes were noted
        return os.pread(file.fileno(), len(before), self.offset - len(before)) == before

    def covers(self, file: BinaryIO) -> bool:
        """Say whether a file is shorter than what was read and begins like it: all of it was read already."""
        size = os.fstat(file.fileno()).st_size
        return size < self.offset and bool(self.head) and self._begins(file, size)

    def found_in(self, file: BinaryIO) -> int | None:
        """Return the offset after what was read last, where older rows were removed before it."""
        before = base64.b64decode(self.before)
        if len(before) < _LEAST:
            return None
        found, start, rest = None, 0, b""
        file.seek(0)
        while chunk := file.read(_CHUNK):
            window = rest + chunk
            at = window.rfind(before)
            if at >= 0:
                found = start + at + len(before)
            rest = window[-(len(before) - 1) :]
            start += len(window) - len(rest)
        return found

    def _begins(self, file: BinaryIO, size: int) -> bool:
        if self.head_digest:
            head = os.pread(file.fileno(), self.head_bytes, 0)
            return hashlib.sha256(head).hexdigest()[:16] == self.head_digest
        head = base64.b64decode(self.head)[:size]
        return os.pread(file.fileno(), len(head), 0) == head


def located(place: Place, family: list[Path]) -> Path | None:
    """Return the file that holds a place: the same one, or else the newest copy of it.

    A place at the very beginning has no content to be known by, so only its own file holds it.
    """
    own = [path for path in family if path.stat().st_ino == place.inode]
    others = [path for path in reversed(family) if path not in own] if place.offset else []
    for path in own + others:
        with path.open("rb") as file:
            if place.is_in(file):
                return path
    return None
