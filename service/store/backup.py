"""Backups of a SQLite store: made while the service writes, checked when made and again before they are used.

A backup is a folder: the database, the weights its versions name, and a manifest with the sha256 of each file.
It is written under another name and renamed when all of it is on disk, so a folder that is there is whole. When
that was done last is noted beside the database, where the service sees it.
"""

import json
import logging
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path

from service.errors import InputRejected, Unavailable
from service.store.schema import known_revisions

log = logging.getLogger(__name__)
DATABASE, WEIGHTS, MANIFEST = "alarmcast.sqlite3", "weights", "manifest.json"
LAST = "last-backup.json"
_FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """What a backup holds."""

    format: int
    made_at: str
    schema: str
    machines: int
    events: int
    files: dict[str, str]


def back_up(data_dir: Path, target: Path) -> Manifest:
    """Copy the store into a new folder; the service may go on writing, and the copy is of one moment."""
    source = data_dir / DATABASE
    if not source.exists():
        raise InputRejected(f"There is no database in {data_dir} to back up; name its folder with --data-dir.")
    if target.exists():
        raise InputRejected(f"{target} exists already; name a new folder for the backup.")
    growing = target.with_name(f"{target.name}.part")
    try:
        shutil.rmtree(growing, ignore_errors=True)
        (growing / WEIGHTS).mkdir(parents=True)
        _copy_database(source, growing / DATABASE)
        for name in _checked(growing / DATABASE):
            shutil.copyfile(data_dir / WEIGHTS / name, growing / WEIGHTS / name)
        manifest = _describe(growing)
        (growing / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
        _to_disk(growing)
        growing.rename(target)
        _sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(f"The backup could not be made: {error}.") from None
    with suppress(OSError):  # the backup is whole, whether or not we may write where the database is
        _note(data_dir, manifest)
    return manifest


def last_backup(data_dir: Path) -> datetime | None:
    """Return when a store was last backed up, as far as is noted beside it."""
    try:
        return datetime.fromisoformat(json.loads((data_dir / LAST).read_text(encoding="utf-8"))["made_at"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def check(backup: Path) -> Manifest:
    """Read a backup whole and return what it holds, or say what is wrong with it."""
    try:
        manifest = Manifest(**json.loads((backup / MANIFEST).read_text(encoding="utf-8")))
        if manifest.format != _FORMAT:
            raise InputRejected(f"{backup} is a backup of another version of Alarmcast; use that version.")
        if manifest.schema not in known_revisions():
            raise InputRejected(
                f"{backup} has schema {manifest.schema} of a newer Alarmcast; restore it with that."
            )
        for name, digest in manifest.files.items():
            if _digest(backup / name) != digest:
                raise InputRejected(f"{name} in {backup} is not what was backed up; use another backup.")
        _checked(backup / DATABASE)
    except (OSError, ValueError, TypeError, AttributeError, sqlite3.Error) as error:
        raise InputRejected(f"{backup} is not a backup that can be used: {error}.") from None
    return manifest


def restore(backup: Path, data_dir: Path) -> tuple[Manifest, Path | None]:
    """Put a backup in the place of the store and return where the old one was put aside, if there was one.

    Nobody else may hold the database. Whatever happens, either the old store is in its place or the new one.
    """
    manifest = check(backup)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        (data_dir / WEIGHTS).mkdir(exist_ok=True)
        for file in sorted((backup / WEIGHTS).iterdir()):
            _copy_file(file, data_dir / WEIGHTS / file.name)
        fresh = data_dir / f"{DATABASE}.restored"
        _copy_file(backup / DATABASE, fresh)
        aside = _put_aside(data_dir)
        fresh.rename(data_dir / DATABASE)
        _sync(data_dir)
    except OSError as error:
        raise Unavailable(f"The backup could not be restored: {error}.") from None
    return manifest, aside


def keep_copy(database: Path, schema: str) -> Path | None:
    """Copy a database beside itself before its schema changes; only the newest such copy is kept.

    Where there is no room the change goes on without one: it is a single transaction in any case.
    """
    kept = database.with_name(f"{database.name}.schema-{schema}")
    growing = kept.with_name(f"{kept.name}.part")
    size, free = database.stat().st_size, shutil.disk_usage(database.parent).free
    if free < 2 * size:
        log.warning("no copy is kept of schema %s: it needs %d MB, %d MB are free", schema, size >> 20, free >> 20)
        return None
    try:
        growing.unlink(missing_ok=True)
        _copy_database(database, growing)
        _sync(growing)
        growing.rename(kept)
        _sync(kept.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(f"The database could not be copied before its schema changes: {error}.") from None
    for older in database.parent.glob(f"{database.name}.schema-*"):
        if older != kept:
            older.unlink(missing_ok=True)
    log.info("kept the database of schema %s as %s; put it in its place again to go back", schema, kept)
    return kept


def _copy_database(source: Path, target: Path) -> None:
    # All pages in one step: a copy in several steps starts again whenever the service commits in between.
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it


def _checked(database: Path) -> list[str]:
    """Check every page of a copy; return the files of the weights that its versions need."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as copy:
        found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(str(found))
        return [f"{name}.safetensors" for (name,) in copy.execute("SELECT DISTINCT weights FROM model_versions")]


def _describe(folder: Path) -> Manifest:
    with closing(sqlite3.connect(f"file:{folder / DATABASE}?mode=ro", uri=True)) as copy:
        schema = copy.execute("SELECT version_num FROM alembic_version").fetchone()[0]
        machines = copy.execute("SELECT count(*) FROM machines").fetchone()[0]
        events = copy.execute("SELECT count(*) FROM events").fetchone()[0]
    files = [folder / DATABASE, *sorted((folder / WEIGHTS).iterdir())]
    digests = {str(file.relative_to(folder)): _digest(file) for file in files}
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(_FORMAT, made_at, schema, machines, events, digests)


def _put_aside(data_dir: Path) -> Path | None:
    """Move the present database and its log away, to be looked at or brought back."""
    if not (data_dir / DATABASE).exists():
        return None
    aside = data_dir / f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    aside.mkdir()
    for suffix in ("-wal", "-shm", ""):
        file = data_dir / f"{DATABASE}{suffix}"
        if file.exists():
            file.rename(aside / file.name)
    return aside


def _copy_file(source: Path, target: Path) -> None:
    part = target.with_name(f"{target.name}.part")
    shutil.copyfile(source, part)
    _sync(part)
    part.rename(target)


def _note(data_dir: Path, manifest: Manifest) -> None:
    part = data_dir / f"{LAST}.part"
    part.write_text(json.dumps({"made_at": manifest.made_at}) + "\n", encoding="utf-8")
    part.rename(data_dir / LAST)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _to_disk(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
