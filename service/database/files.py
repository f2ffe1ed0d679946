"""Private files, written durably, for the database, backups and weights."""

import os
import shutil
import stat
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_OTHERS = stat.S_IRWXO


def make_private_folder(path: Path) -> None:
    """Create a private folder; an existing one keeps its mode."""
    existed = path.exists()
    path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    if not existed:
        path.chmod(PRIVATE_FOLDER)  # whatever the umask


def create_private(path: Path) -> None:
    """Create an empty private file unless it exists; SQLite gives its log the mode of the database."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    except FileExistsError:
        return
    try:
        os.fchmod(file, PRIVATE_FILE)
    finally:
        os.close(file)


def close_to_others(path: Path) -> None:
    """Remove the permissions of others from a file, if possible."""
    try:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & _OTHERS and not path.is_symlink():
            path.chmod(mode & ~_OTHERS)
    except OSError:
        return


def copy_private(source: Path, target: Path) -> str:
    """Copy a regular file into a new private one, durably, and return its sha256; a link is an error."""
    digest = sha256()
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(reading, "rb") as original:
        if not stat.S_ISREG(os.fstat(original.fileno()).st_mode):
            raise OSError(f"{source} is not a regular file")
        create_private(target)
        with target.open("r+b") as copy:
            copy.truncate()
            while piece := original.read(1 << 20):
                digest.update(piece)
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
    return digest.hexdigest()


def write_private(path: Path, text: str) -> None:
    """Write a small private file atomically and durably."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    create_private(part)
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    sync(path.parent)


def digest_of(file: Path) -> str:
    """Return the sha256 of a regular file; a link is an error."""
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as content:
        if not stat.S_ISREG(os.fstat(content.fileno()).st_mode):
            raise OSError(f"{file} is not a regular file")
        return file_digest(content, "sha256").hexdigest()


def remove_folder(path: Path) -> None:
    """Delete a folder, if it exists."""
    shutil.rmtree(path, ignore_errors=True)


def sync(path: Path) -> None:
    """Flush a file or the entries of a folder to disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def stale_files(folder: Path, pattern: str, *, older_than: float) -> list[Path]:
    """Return matching files last written before a Unix time."""
    found = []
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):  # deleted by another process
            if path.stat().st_mtime < older_than:
                found.append(path)
    return found
