"""Whether backups are made: a warning when the last one failed, is old, or was never made."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.database.backup import BackupRecord, read_record, record_start
from service.settings import Settings

_DO = "Make one, while the service runs: alarmcast admin backup FOLDER"


@dataclass(frozen=True)
class BackupWatch:
    """Reads the record beside a SQLite store; of another database's backups nobody tells us."""

    settings: Settings
    now: Callable[[], datetime]

    @property
    def applies(self) -> bool:
        """Whether ``alarmcast admin backup`` is how this store is backed up."""
        return self.settings.database_url is None

    @property
    def record(self) -> BackupRecord:
        """How the last backups went."""
        return read_record(self.settings.data_dir)

    @property
    def max_age(self) -> timedelta | None:
        """From which age on a backup is too old; None if nobody wants to be warned."""
        hours = self.settings.backup_max_age_hours
        return timedelta(hours=hours) if hours else None

    def begin(self) -> None:
        """Start to count how long the store has been without a backup."""
        if self.applies:
            with suppress(OSError):
                record_start(self.settings.data_dir, self.now())

    def warnings(self) -> dict[str, str]:
        """Say what is wrong with the backups, if anything is."""
        if not self.applies or self.max_age is None:
            return {}
        record = self.record
        if record.failed_at is not None:
            last = (
                f"the last good one is of {record.made_at:%Y-%m-%d %H:%M} UTC"
                if record.made_at
                else "none is good"
            )
            when = f"{record.failed_at:%Y-%m-%d %H:%M} UTC"
            return {"backup": f"The backup at {when} failed, and {last}. {record.error or ''} {_DO}"}
        since = record.made_at or record.since
        if since is None or self.now() - since <= self.max_age:
            return {}
        what = "The last backup is" if record.made_at else "No backup was ever made, and the store is"
        hours = (self.now() - since) // timedelta(hours=1)
        limit = f"{self.settings.backup_max_age_hours:g}"
        return {"backup": f"{what} {hours} hours old; backup_max_age_hours is {limit}. {_DO}"}
