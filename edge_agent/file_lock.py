"""A lock on an open file that ends with the process, on POSIX and on Windows."""

from importlib import import_module
from typing import Any


def try_lock(file: int) -> bool:
    """Lock a file for this process alone; return whether that was possible."""
    return _lock(file, "LOCK_EX", release=False)


def is_locked(file: int) -> bool:
    """Return whether another process has locked a file."""
    return not _lock(file, "LOCK_SH", release=True)


def _lock(file: int, mode: str, *, release: bool) -> bool:
    try:
        posix: Any = import_module("fcntl")
    except ModuleNotFoundError:
        return _lock_on_windows(file, release=release)
    try:
        posix.flock(file, getattr(posix, mode) | posix.LOCK_NB)
    except OSError:
        return False
    if release:
        posix.flock(file, posix.LOCK_UN)
    return True


def _lock_on_windows(file: int, *, release: bool) -> bool:
    """Lock the first byte: Windows locks bytes, not files."""
    windows: Any = import_module("msvcrt")
    try:
        windows.locking(file, windows.LK_NBLCK, 1)
        if release:
            windows.locking(file, windows.LK_UNLCK, 1)
    except OSError:
        return False
    return True
