"""Who changed what, when, from where and why: only ever added to."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from service.auth.audit import AuditQuery, AuditRecord
from service.database.engine import Database
from service.database.tables import audit_log
from service.http.principal import current_request
from wire.timestamps import from_us, to_us


@dataclass(frozen=True)
class AuditStore:
    """The book of changes."""

    database: Database

    def newest(self, limit: int = 100) -> list[AuditRecord]:
        """Return the latest entries, newest first."""
        return self.page(AuditQuery(limit))

    def page(self, query: AuditQuery) -> list[AuditRecord]:
        """Return entries, newest first."""
        statement = select(audit_log).order_by(audit_log.c.id.desc()).limit(query.limit)
        if query.before is not None:
            statement = statement.where(audit_log.c.id < query.before)
        if query.who is not None:
            statement = statement.where(audit_log.c.actor == query.who)
        with self.database.read() as connection:
            return [
                AuditRecord(
                    from_us(row.at_us), row.actor, row.action, row.subject, row.reason, row.client_ip, row.id
                )
                for row in connection.execute(statement)
            ]

    def write(self, *, at: datetime, who: str, action: str, subject: str, reason: str | None = None) -> None:
        """Write an entry of a deed that changes nothing in the database itself, or many things one by one."""
        with self.database.write() as connection:
            record(connection, at=at, who=who, action=action, subject=subject, reason=reason)


def record(
    connection: Connection, *, at: datetime, who: str, action: str, subject: str, reason: str | None
) -> None:
    """Write an entry inside the transaction of the change it tells of.

    What was asked for bears the plant time and the address of its request; ``at`` is for what the service does
    by itself.
    """
    request = current_request()
    row = {
        "at_us": to_us(request.at if request else at),
        "actor": who,
        "action": action,
        "subject": subject,
        "reason": reason,
        "client_ip": request.origin if request else None,
    }
    connection.execute(insert(audit_log).values(**row))


def record_request(connection: Connection, *, action: str, subject: str) -> None:
    """Write an entry if the change was asked for; what the service does by itself needs none."""
    request = current_request()
    if request is not None and request.principal is not None:
        who = request.principal.name
        record(connection, at=request.at, who=who, action=action, subject=subject, reason=None)
