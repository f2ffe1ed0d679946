"""The way back from a backup: all of it or nothing, however often the process is killed on the way.

First everything is copied into a folder of its own and checked there. Then a marker is written, and from that
moment on the restore only goes forwards: the old database is moved aside and the new one into its place, by
steps that may be repeated. Whoever opens the store next finishes what the marker says, or, if there is no marker,
deletes what was copied. So there is never a start on an empty or a half-replaced store.
"""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

from service.database.backup import DATABASE, RESTORE_MARKER, WEIGHTS, Manifest, check
from service.database.files import copy_private, make_private_folder, remove_folder, sync, write_private
from service.errors import InputRejected, Unavailable

log = logging.getLogger(__name__)
STAGING = "restoring"
_DATABASE_FILES = (f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal", DATABASE)


def restore(backup: Path, data_dir: Path) -> tuple[Manifest, Path | None]:
    """Put a backup in the place of the store and return where the old one was put aside, if there was one.

    Nobody else may hold the database. Whatever happens, either the old store is in its place or the new one, or
    the next start puts the new one there.
    """
    make_private_folder(data_dir)
    finish_restore(data_dir)
    manifest = check(backup)
    staging = data_dir / STAGING
    try:
        remove_folder(staging)
        make_private_folder(staging / WEIGHTS)
        staging.chmod(0o700)
        _stage(backup, manifest, staging)
        sync(data_dir)
        aside = f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}" if _present(data_dir) else None
        write_private(data_dir / RESTORE_MARKER, json.dumps({"aside": aside}) + "\n")
    except OSError as error:
        remove_folder(staging)
        raise Unavailable(f"The backup could not be restored: {error}. The old store is untouched.") from None
    except InputRejected:
        remove_folder(staging)
        raise
    _finish(data_dir, aside)
    return manifest, None if aside is None else data_dir / aside


def finish_restore(data_dir: Path) -> bool:
    """Finish a restore that was interrupted, or undo one that had not begun to replace anything.

    Return whether a restored store was put into its place. The caller holds the lock of the folder.
    """
    marker = data_dir / RESTORE_MARKER
    if not marker.exists():
        remove_folder(data_dir / STAGING)
        return False
    try:
        aside = json.loads(marker.read_text(encoding="utf-8"))["aside"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            f"A restore was interrupted, and {marker} cannot be read: {error}. Restore the backup again after you "
            f"have moved {marker} away."
        ) from None
    _finish(data_dir, aside)
    log.warning("finished a restore that was interrupted; the store before it is in %s", aside or "no folder")
    return True


def _finish(data_dir: Path, aside: str | None) -> None:
    """Do what is left of a restore; every step may have been done already."""
    staging = data_dir / STAGING
    try:
        _move_weights(staging / WEIGHTS, data_dir / WEIGHTS)
        if (staging / DATABASE).exists():  # so what is in its place is still the old one
            if aside is not None:
                _move_aside(data_dir, data_dir / aside)
            (staging / DATABASE).rename(data_dir / DATABASE)
            sync(data_dir)
        (data_dir / RESTORE_MARKER).unlink()
        sync(data_dir)
    except OSError as error:
        raise Unavailable(
            f"The restore could not be finished: {error}. Mend that, and start the service or restore again: the "
            "rest is done then."
        ) from None
    remove_folder(staging)


def _stage(backup: Path, manifest: Manifest, staging: Path) -> None:
    """Copy what the manifest names, and nothing else."""
    for name, digest in manifest.files.items():
        if copy_private(backup / name, staging / name) != digest:
            raise InputRejected(f"{name} in {backup} has changed while it was read; use another backup.")
    for folder in (staging / WEIGHTS, staging):
        sync(folder)


def _present(data_dir: Path) -> bool:
    return any((data_dir / name).exists() for name in _DATABASE_FILES)


def _move_weights(source: Path, target: Path) -> None:
    make_private_folder(target)
    if source.exists():
        for file in sorted(source.iterdir()):
            file.rename(target / file.name)
    sync(target)


def _move_aside(data_dir: Path, aside: Path) -> None:
    """Move the present database and its log away, to be looked at or brought back."""
    make_private_folder(aside)
    sync(data_dir)
    for name in _DATABASE_FILES:
        if (data_dir / name).exists():
            (data_dir / name).rename(aside / name)
    sync(aside)
    sync(data_dir)
