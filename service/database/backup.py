"""Backup and restore of a SQLite database and its weights.

A backup is a folder with the database, the weights of its versions and a manifest with the sha256 of each file. It
is written under a temporary name and renamed when complete. The result of the last attempt is recorded next to the
database, for the service's warnings.

A restore copies the backup into a staging folder and checks it there. Then it writes a marker and only goes
forward, in repeatable steps. The next process that opens the data folder finishes what the marker says, or
deletes the staging folder if there is no marker. So a service never starts on a partly replaced database.
"""

import errno
import json
import logging
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from service.database.files import (
    copy_private,
    create_private,
    digest_of,
    make_private_folder,
    remove_folder,
    sync,
    write_private,
)
from service.database.schema import known_revisions
from service.errors import InputRejected, Unavailable

log = logging.getLogger(__name__)
DATABASE, WEIGHTS, MANIFEST = "alarmcast.sqlite3", "weights", "manifest.json"
RESTORE_MARKER = "restore.json"  # in the data folder of an unfinished restore
RECORD = "last-backup.json"
STAGING = "restoring"
_FORMAT = 1
_WEIGHTS_FILE = re.compile(rf"{WEIGHTS}/[0-9a-f]{{64}}\.safetensors")
_ATTEMPTS = 5  # a version may be pruned between the copy of the database and that of its weights
_RECORD_TIMES = ("made_at", "failed_at", "since")
_DATABASE_FILES = (f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal", DATABASE)


@dataclass(frozen=True)
class Manifest:
    """Contents of a backup; ``lost``: versions whose weights were missing or damaged."""

    format: int
    made_at: str
    schema: str
    machines: int
    events: int
    files: dict[str, str]
    lost: tuple[str, ...] = ()


def back_up(data_dir: Path, target: Path) -> Manifest:
    """Write a consistent backup into a new folder; the service may write meanwhile."""
    if (data_dir / RESTORE_MARKER).exists():
        raise InputRejected(
            f"A restore into {data_dir} was interrupted, so there is no complete database. Start the service or "
            "run alarmcast migrate: either finishes the restore. Then make the backup."
        )
    if not (data_dir / DATABASE).exists():
        raise InputRejected(f"There is no database in {data_dir} to back up; name its folder with --data-dir.")
    try:
        manifest = _back_up(data_dir, target)
    except (InputRejected, Unavailable) as error:
        record_failure(data_dir, str(error))
        raise
    record_success(data_dir, manifest.made_at)
    return manifest


def _back_up(data_dir: Path, target: Path) -> Manifest:
    if target.exists():
        raise InputRejected(f"{target} exists already; name a new folder for the backup.")
    growing = target.with_name(f"{target.name}.part")
    try:
        remove_folder(growing)
        make_private_folder(growing / WEIGHTS)
        growing.chmod(0o700)
        lost = _copy_all(data_dir, growing)
        manifest = _describe(growing, lost)
        _write_manifest(growing, manifest)
        for folder in (growing / WEIGHTS, growing):
            sync(folder)
        growing.rename(target)
        sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(_failure(error, data_dir, target)) from None
    finally:
        remove_folder(growing)  # delete an unfinished backup
    return manifest


def check(backup: Path) -> Manifest:
    """Verify all files of a backup and return its manifest, or raise :class:`InputRejected`."""
    try:
        if (backup / MANIFEST).is_symlink():
            raise InputRejected(f"{MANIFEST} in {backup} is a link and not a file; use another backup.")
        manifest = Manifest(**json.loads((backup / MANIFEST).read_text(encoding="utf-8")))
        if manifest.format != _FORMAT:
            raise InputRejected(f"{backup} is a backup of another version of Alarmcast; use that version.")
        if manifest.schema not in known_revisions():
            raise InputRejected(
                f"{backup} has schema {manifest.schema} of a newer Alarmcast; restore it with that."
            )
        _check_names(backup, manifest)
        for name, digest in manifest.files.items():
            if digest_of(backup / name) != digest:
                raise InputRejected(f"{name} in {backup} is not what was backed up; use another backup.")
        needed_weights(backup / DATABASE)
    except (OSError, ValueError, TypeError, AttributeError, sqlite3.Error) as error:
        raise InputRejected(f"{backup} is not a backup that can be used: {error}.") from None
    return replace(manifest, lost=tuple(manifest.lost))


def _check_names(backup: Path, manifest: Manifest) -> None:
    """Reject a manifest with other files than database and weights, and a linked weights folder."""
    wrong = [name for name in manifest.files if name != DATABASE and not _WEIGHTS_FILE.fullmatch(name)]
    if wrong or DATABASE not in manifest.files:
        raise InputRejected(
            f"{backup} is not a backup: its manifest names {wrong[0] if wrong else 'no database'}."
        )
    if (backup / WEIGHTS).is_symlink():
        raise InputRejected(f"{WEIGHTS} in {backup} is a link and not a folder; use another backup.")


def keep_copy(database: Path, schema: str) -> Path | None:
    """Copy a database before a schema upgrade; only the newest copy is kept.

    Without enough disk space the upgrade goes on without a copy: it is a single transaction.
    """
    kept = database.with_name(f"{database.name}.schema-{schema}")
    growing = kept.with_name(f"{kept.name}.part")
    size, free = database.stat().st_size, shutil.disk_usage(database.parent).free
    if free < 2 * size:
        log.warning("no copy of schema %s: it needs %d MB, %d MB are free", schema, size >> 20, free >> 20)
        return None
    try:
        growing.unlink(missing_ok=True)
        _copy_database(database, growing)
        sync(growing)
        growing.rename(kept)
        sync(kept.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(f"The database could not be copied before its schema changes: {error}.") from None
    for older in database.parent.glob(f"{database.name}.schema-*"):
        if older != kept:
            older.unlink(missing_ok=True)
    log.info("kept a copy of the database with schema %s: %s; restore this file to go back", schema, kept)
    return kept


def _copy_all(data_dir: Path, growing: Path) -> tuple[str, ...]:
    """Copy a database and its weights; return the versions whose weights are missing, which is no error."""
    for _ in range(_ATTEMPTS):
        (growing / DATABASE).unlink(missing_ok=True)
        _copy_database(data_dir / DATABASE, growing / DATABASE)
        needed = needed_weights(growing / DATABASE)
        missing = {name for name in needed if not _copy_weights(data_dir, growing, name)}
        if not missing:
            return ()
        if missing <= set(needed_weights(data_dir / DATABASE, check=False)):
            return tuple(sorted(version for name in missing for version in needed[name]))
    raise Unavailable("Model versions were deleted repeatedly during the backup; try again.")


def _copy_weights(data_dir: Path, growing: Path, name: str) -> bool:
    file = growing / WEIGHTS / f"{name}.safetensors"
    if file.exists():
        return True
    try:
        whole = copy_private(data_dir / WEIGHTS / file.name, file) == name
    except FileNotFoundError:
        return False
    if not whole:
        file.unlink()
    return whole


def _copy_database(source: Path, target: Path) -> None:
    # All pages in one step: a copy in several steps restarts whenever the service commits.
    create_private(target)
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file without a log
    sync(target)


def needed_weights(database: Path, *, check: bool = True) -> dict[str, list[str]]:
    """Return the weights in use and their versions; ``check`` verifies every page of a copy first."""
    # A log next to a copy is not part of it.
    mode = "mode=ro&immutable=1" if check else "mode=ro"
    with closing(sqlite3.connect(f"file:{database}?{mode}", uri=True, timeout=30)) as copy:
        found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0] if check else "ok"
        if found != "ok":
            raise sqlite3.DatabaseError(str(found))
        needed: dict[str, list[str]] = {}
        for number, name in copy.execute("SELECT id, weights FROM model_versions WHERE NOT pruned"):
            needed.setdefault(name, []).append(f"v{number}")
        return needed


def _describe(folder: Path, lost: tuple[str, ...]) -> Manifest:
    with closing(sqlite3.connect(f"file:{folder / DATABASE}?mode=ro", uri=True)) as copy:
        schema = copy.execute("SELECT version_num FROM alembic_version").fetchone()[0]
        machines = copy.execute("SELECT count(*) FROM machines").fetchone()[0]
        events = copy.execute("SELECT count(*) FROM events").fetchone()[0]
    files = [folder / DATABASE, *sorted((folder / WEIGHTS).iterdir())]
    digests = {str(file.relative_to(folder)): digest_of(file) for file in files}
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(_FORMAT, made_at, schema, machines, events, digests, lost)


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    write_private(folder / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")


def _failure(error: OSError | sqlite3.Error, data_dir: Path, target: Path) -> str:
    full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    if full or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        size = (data_dir / DATABASE).stat().st_size >> 20
        return (
            f"The backup could not be made: no space left in {target.parent}. The database alone needs "
            f"{size} MB; free some space, or name a folder on another disk."
        )
    return f"The backup could not be made: {error}."


@dataclass(frozen=True)
class BackupRecord:
    """Result of the last backups; ``since``: first start of a service without a backup."""

    made_at: datetime | None = None
    failed_at: datetime | None = None
    error: str | None = None
    since: datetime | None = None

    @property
    def failed(self) -> bool:
        return self.failed_at is not None


def read_record(data_dir: Path) -> BackupRecord:
    """Return the record of a data folder; an unreadable file counts as none."""
    try:
        found = json.loads((data_dir / RECORD).read_text(encoding="utf-8"))
        times = {
            name: datetime.fromisoformat(found[name]) for name in _RECORD_TIMES if found.get(name) is not None
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return BackupRecord()
    if any(time.tzinfo is None for time in times.values()):
        return BackupRecord()
    return BackupRecord(**times, error=str(found["error"]) if found.get("error") else None)


def record_success(data_dir: Path, made_at: str) -> None:
    """Record a backup."""
    _write_record(data_dir, BackupRecord(made_at=datetime.fromisoformat(made_at)))


def record_failure(data_dir: Path, error: str) -> None:
    """Record a failed attempt; the time of the last good backup is kept."""
    _write_record(data_dir, replace(read_record(data_dir), failed_at=datetime.now(UTC), error=error))


def record_start(data_dir: Path, now: datetime) -> None:
    """Record the first start without a backup, so that a new installation is not warned about at once."""
    found = read_record(data_dir)
    if found.made_at is None and found.since is None:
        _write_record(data_dir, replace(found, since=now))


def _write_record(data_dir: Path, record: BackupRecord) -> None:
    values = {
        name: moment.isoformat(timespec="seconds") for name in _RECORD_TIMES if (moment := getattr(record, name))
    }
    if record.error:
        values["error"] = record.error
    with suppress(OSError):  # the user may have read access only
        write_private(data_dir / RECORD, json.dumps(values) + "\n")


def restore(backup: Path, data_dir: Path) -> tuple[Manifest, Path | None]:
    """Replace the database by a backup; return its manifest and the folder of the old database, if any.

    No other process may use the database.
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
        aside = (
            f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
            if any((data_dir / name).exists() for name in _DATABASE_FILES)
            else None
        )
        write_private(data_dir / RESTORE_MARKER, json.dumps({"aside": aside}) + "\n")
    except OSError as error:
        remove_folder(staging)
        raise Unavailable(f"The backup could not be restored: {error}. The old database is unchanged.") from None
    except InputRejected:
        remove_folder(staging)
        raise
    _finish_steps(data_dir, aside)
    return manifest, None if aside is None else data_dir / aside


def finish_restore(data_dir: Path) -> bool:
    """Finish an interrupted restore, or discard one that had not replaced anything yet.

    Return whether a restore was finished. The caller holds the lock of the folder.
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
    _finish_steps(data_dir, aside)
    log.warning("finished an interrupted restore; the previous database is in %s", aside or "no folder")
    return True


def _finish_steps(data_dir: Path, aside: str | None) -> None:
    """Do the remaining steps of a restore; each of them is repeatable."""
    staging = data_dir / STAGING
    try:
        _move_weights(staging / WEIGHTS, data_dir / WEIGHTS)
        if (staging / DATABASE).exists():  # the old database is still in its place
            if aside is not None:
                _move_aside(data_dir, data_dir / aside)
            (staging / DATABASE).rename(data_dir / DATABASE)
            sync(data_dir)
        (data_dir / RESTORE_MARKER).unlink()
        sync(data_dir)
    except OSError as error:
        raise Unavailable(
            f"The restore could not be finished: {error}. Correct this, then start the service or restore again; "
            "either finishes the restore."
        ) from None
    remove_folder(staging)


def _stage(backup: Path, manifest: Manifest, staging: Path) -> None:
    for name, digest in manifest.files.items():
        if copy_private(backup / name, staging / name) != digest:
            raise InputRejected(f"{name} in {backup} changed while it was read; use another backup.")
    for folder in (staging / WEIGHTS, staging):
        sync(folder)


def _move_weights(source: Path, target: Path) -> None:
    make_private_folder(target)
    if source.exists():
        for file in sorted(source.iterdir()):
            file.rename(target / file.name)
    sync(target)


def _move_aside(data_dir: Path, aside: Path) -> None:
    make_private_folder(aside)
    sync(data_dir)
    for name in _DATABASE_FILES:
        if (data_dir / name).exists():
            (data_dir / name).rename(aside / name)
    sync(aside)
    sync(data_dir)
