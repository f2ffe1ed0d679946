"""Backups of a SQLite store: made while the service writes, checked when made and again before they are used.

A backup is a folder: the database, the weights its versions need, and a manifest with the sha256 of each file.
It is written under another name and renamed when all of it is on disk, so a folder that is there is whole. How
the last attempt ended is recorded beside the database, where the service sees it.
"""

import errno
import json
import logging
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from service.database.backup_record import record_failure, record_success
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
RESTORE_MARKER = "restore.json"  # in a data folder in which a restore was begun and has not ended
_FORMAT = 1
_WEIGHTS_FILE = re.compile(rf"{WEIGHTS}/[0-9a-f]{{64}}\.safetensors")
_ATTEMPTS = 5  # a version may be pruned between the copy of the database and that of its weights


@dataclass(frozen=True)
class Manifest:
    """What a backup holds; ``lost`` are the versions whose weights were missing or damaged in the store."""

    format: int
    made_at: str
    schema: str
    machines: int
    events: int
    files: dict[str, str]
    lost: tuple[str, ...] = ()


def back_up(data_dir: Path, target: Path) -> Manifest:
    """Copy the store into a new folder; the service may go on writing, and the copy is of one moment."""
    if (data_dir / RESTORE_MARKER).exists():
        raise InputRejected(
            f"A restore into {data_dir} was interrupted, and there is nothing whole to back up. Start the service "
            "or run alarmcast migrate: either finishes the restore. Then make the backup."
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
        lost = _copy_store(data_dir, growing)
        manifest = _describe(growing, lost)
        _write_manifest(growing, manifest)
        for folder in (growing / WEIGHTS, growing):
            sync(folder)
        growing.rename(target)
        sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(_why_not(error, data_dir, target)) from None
    finally:
        remove_folder(growing)  # what was not finished would only take room
    return manifest


def check(backup: Path) -> Manifest:
    """Read a backup whole and return what it holds, or say what is wrong with it."""
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
        _insist_on_names(backup, manifest)
        for name, digest in manifest.files.items():
            if digest_of(backup / name) != digest:
                raise InputRejected(f"{name} in {backup} is not what was backed up; use another backup.")
        needed_weights(backup / DATABASE)
    except (OSError, ValueError, TypeError, AttributeError, sqlite3.Error) as error:
        raise InputRejected(f"{backup} is not a backup that can be used: {error}.") from None
    return replace(manifest, lost=tuple(manifest.lost))


def _insist_on_names(backup: Path, manifest: Manifest) -> None:
    """Refuse a manifest that names anything but a database and weights, and a folder that is a link."""
    wrong = [name for name in manifest.files if name != DATABASE and not _WEIGHTS_FILE.fullmatch(name)]
    if wrong or DATABASE not in manifest.files:
        raise InputRejected(
            f"{backup} is not a backup: its manifest names {wrong[0] if wrong else 'no database'}."
        )
    if (backup / WEIGHTS).is_symlink():
        raise InputRejected(f"{WEIGHTS} in {backup} is a link and not a folder; use another backup.")


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
        sync(growing)
        growing.rename(kept)
        sync(kept.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(f"The database could not be copied before its schema changes: {error}.") from None
    for older in database.parent.glob(f"{database.name}.schema-*"):
        if older != kept:
            older.unlink(missing_ok=True)
    log.info("kept the database of schema %s as %s; put it in its place again to go back", schema, kept)
    return kept


def _copy_store(data_dir: Path, growing: Path) -> tuple[str, ...]:
    """Copy a database and the weights that it needs; return the versions whose weights the store has lost.

    Those are no obstacle: they serve after a restore as little as before.
    """
    for _ in range(_ATTEMPTS):
        (growing / DATABASE).unlink(missing_ok=True)
        _copy_database(data_dir / DATABASE, growing / DATABASE)
        needed = needed_weights(growing / DATABASE)
        missing = {name for name in needed if not _copy_weights(data_dir, growing, name)}
        if not missing:
            return ()
        if missing <= set(needed_weights(data_dir / DATABASE, check=False)):
            return tuple(sorted(version for name in missing for version in needed[name]))
    raise Unavailable("Versions were deleted again and again while they were copied; make the backup again.")


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
    # All pages in one step: a copy in several steps starts again whenever the service commits in between.
    create_private(target)
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    sync(target)


def needed_weights(database: Path, *, check: bool = True) -> dict[str, list[str]]:
    """Return the weights that versions need, and which versions; first check every page, as of a copy."""
    # A copy is one file: a log that lies beside it is not a part of it.
    mode = "mode=ro&immutable=1" if check else "mode=ro"
    with closing(sqlite3.connect(f"file:{database}?{mode}", uri=True, timeout=30)) as copy:
        found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0] if check else "ok"
        if found != "ok":
            raise sqlite3.DatabaseError(str(found))
        columns = {row[1] for row in copy.execute("PRAGMA table_info(model_versions)")}
        chosen = "WHERE NOT pruned" if "pruned" in columns else ""  # the oldest schema never pruned
        needed: dict[str, list[str]] = {}
        for number, name in copy.execute(f"SELECT id, weights FROM model_versions {chosen}"):  # noqa: S608 - our words
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
    values = asdict(manifest)
    if not manifest.lost:
        del values["lost"]  # older versions of Alarmcast do not know it
    write_private(folder / MANIFEST, json.dumps(values, indent=2) + "\n")


def _why_not(error: OSError | sqlite3.Error, data_dir: Path, target: Path) -> str:
    full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    if full or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        size = (data_dir / DATABASE).stat().st_size >> 20
        return (
            f"The backup could not be made: there is no room left in {target.parent}. The database alone takes "
            f"{size} MB; make room, or name a folder on another disk."
        )
    return f"The backup could not be made: {error}."
