"""What somebody who was killed has left in a folder."""

from contextlib import suppress
from pathlib import Path


def stale_files(folder: Path, pattern: str, *, older_than: float) -> list[Path]:
    """Return what is called like this and was last written before a moment (Unix time)."""
    found = []
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):  # another process was faster
            if path.stat().st_mtime < older_than:
                found.append(path)
    return found
