"""The position in a log file, found again after the file was renamed, copied or truncated."""

import base64
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

_HEAD_BYTES, _BEFORE_BYTES = 512, 256  # stored from the start of the file, and before the offset
_MIN_SEARCH_BYTES = 32  # enough to be found elsewhere in a file
_CHUNK = 1 << 20


@dataclass(frozen=True)
class FilePosition:
    """A file, the offset, and enough of the content to recognise the file.

    The inode identifies a renamed file. The first bytes and those before the offset identify a copy, and show
    whether a file of the same inode was truncated and has grown again.
    """

    inode: int
    offset: int
    head_bytes: int = 0  # older agents stored a digest of these instead of the bytes
    head_digest: str = ""
    head: str = ""
    before: str = ""
    mtime_ns: int = 0
    last_us: int | None = None  # the time of the last alarm that was read

    @classmethod
    def at_offset(cls, file: BinaryIO, offset: int, last_us: int | None) -> "FilePosition":
        """Return the position at an offset of an open file."""
        stat, number = os.fstat(file.fileno()), file.fileno()
        head = os.pread(number, min(offset, _HEAD_BYTES), 0)
        before = os.pread(number, min(offset, _BEFORE_BYTES), max(0, offset - _BEFORE_BYTES))
        return cls(
            stat.st_ino,
            offset,
            head=base64.b64encode(head).decode(),
            before=base64.b64encode(before).decode(),
            mtime_ns=stat.st_mtime_ns,
            last_us=last_us,
        )

    @classmethod
    def read(cls, bookmark: str) -> "FilePosition":
        """Parse a bookmark."""
        return cls(**json.loads(bookmark))

    def write(self) -> str:
        """Return the bookmark."""
        needed = ("inode", "offset")
        return json.dumps({name: value for name, value in asdict(self).items() if value or name in needed})

    def matches(self, file: BinaryIO) -> bool:
        """Return whether a file contains this position: all stored bytes match."""
        if os.fstat(file.fileno()).st_size < self.offset or not self._begins(file, self.offset):
            return False
        before = base64.b64decode(self.before)
        if not self.head_digest and len(before) < min(self.offset, _BEFORE_BYTES):
            return False  # the file was truncated while the bytes were read
        return os.pread(file.fileno(), len(before), self.offset - len(before)) == before

    def covers(self, file: BinaryIO) -> bool:
        """Return whether a file is a shorter copy of what was read already."""
        size = os.fstat(file.fileno()).st_size
        return size < self.offset and bool(self.head) and self._begins(file, size)

    def found_in(self, file: BinaryIO) -> int | None:
        """Return the offset after the last bytes read, if older rows were removed before them."""
        before = base64.b64decode(self.before)
        if len(before) < _MIN_SEARCH_BYTES:
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


def find_file(position: FilePosition, files: list[Path]) -> Path | None:
    """Return the file that contains a position: the same one, or else the newest copy of it.

    A position at the start has no content to compare, so only its own file contains it.
    """
    own = [path for path in files if path.stat().st_ino == position.inode]
    others = [path for path in reversed(files) if path not in own] if position.offset else []
    for path in own + others:
        with path.open("rb") as file:
            if position.matches(file):
                return path
    return None
