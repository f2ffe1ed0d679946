"""Who changed what, when and why: only ever added to."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from service.core.audit import Deed
from service.store.engine import Database
from service.store.tables import audit
from wire.micros import micros, moment


@dataclass(frozen=True)
class AuditStore:
    """The book of changes."""

    database: Database

    def newest(self, limit: int = 100) -> list[Deed]:
        """Return the latest entries, newest first."""
        with self.database.read() as connection:
            rows = connection.execute(select(audit).order_by(audit.c.id.desc()).limit(limit))
            return [Deed(moment(row.at_us), row.who, row.action, row.subject, row.reason) for row in rows]


def note(connection: Connection, *, at: datetime, who: str, action: str, subject: str, reason: str | None) -> None:
    """Write an entry inside the transaction of the change it tells of."""
    row = {"at_us": micros(at), "who": who, "action": action, "subject": subject, "reason": reason}
    connection.execute(insert(audit).values(**row))
