"""What is known of a store's backups: when the last one was made, and how the last attempt failed."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from service.database.files import write_private

FILE = "last-backup.json"
_TIMES = ("made_at", "failed_at", "since")


@dataclass(frozen=True)
class BackupRecord:
    """The outcome of backups; ``since`` is when a service first ran on a store without one."""

    made_at: datetime | None = None
    failed_at: datetime | None = None
    error: str | None = None
    since: datetime | None = None

    @property
    def failed(self) -> bool:
        """Whether the last attempt failed."""
        return self.failed_at is not None


def read_record(data_dir: Path) -> BackupRecord:
    """Return what is recorded beside a store; a file that cannot be read records nothing."""
    try:
        found = json.loads((data_dir / FILE).read_text(encoding="utf-8"))
        times = {name: datetime.fromisoformat(found[name]) for name in _TIMES if found.get(name) is not None}
    except (OSError, ValueError, TypeError, AttributeError):
        return BackupRecord()
    if any(time.tzinfo is None for time in times.values()):
        return BackupRecord()
    return BackupRecord(**times, error=str(found["error"]) if found.get("error") else None)


def record_success(data_dir: Path, made_at: str) -> None:
    """Record that a backup was made."""
    _write(data_dir, BackupRecord(made_at=datetime.fromisoformat(made_at)))


def record_failure(data_dir: Path, error: str) -> None:
    """Record that the last attempt failed; when the last good backup was made stays known."""
    _write(data_dir, replace(read_record(data_dir), failed_at=datetime.now(UTC), error=error))


def record_start(data_dir: Path, now: datetime) -> None:
    """Record from when on a store is without a backup, so that a new one is not warned of at once."""
    found = read_record(data_dir)
    if found.made_at is None and found.since is None:
        _write(data_dir, replace(found, since=now))


def _write(data_dir: Path, record: BackupRecord) -> None:
    values = {name: moment.isoformat(timespec="seconds") for name in _TIMES if (moment := getattr(record, name))}
    if record.error:
        values["error"] = record.error
    with suppress(OSError):  # a backup may be made by somebody who may only read the store
        write_private(data_dir / FILE, json.dumps(values) + "\n")
