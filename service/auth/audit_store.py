"""The audit log: who changed what, when, from where and why. Entries are only added."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from service.database.engine import Database
from service.database.tables import audit_log
from service.http.principal import current_request
from wire.rest.audit import AuditEntry
from wire.timestamps import from_us, to_us


@dataclass(frozen=True)
class AuditQuery:
    """A page of the audit log, newest first."""

    limit: int = 100
    before: int | None = None
    who: str | None = None


@dataclass(frozen=True)
class AuditStore:
    """Reads and writes the audit log."""

    database: Database

    def newest(self, limit: int = 100) -> list[AuditEntry]:
        """Return the latest entries, newest first."""
        return self.page(AuditQuery(limit))

    def page(self, query: AuditQuery) -> list[AuditEntry]:
        """Return entries, newest first."""
        statement = select(audit_log).order_by(audit_log.c.id.desc()).limit(query.limit)
        if query.before is not None:
            statement = statement.where(audit_log.c.id < query.before)
        if query.who is not None:
            statement = statement.where(audit_log.c.actor == query.who)
        with self.database.read() as connection:
            return [
                AuditEntry(
                    id=row.id,
                    at=from_us(row.at_us),
                    actor=row.actor,
                    action=row.action,
                    subject=row.subject,
                    reason=row.reason,
                    origin=row.client_ip,
                )
                for row in connection.execute(statement)
            ]

    def write(self, *, at: datetime, who: str, action: str, subject: str, reason: str | None = None) -> None:
        """Write an entry in a transaction of its own."""
        with self.database.write() as connection:
            record(connection, at=at, who=who, action=action, subject=subject, reason=reason)


def record(
    connection: Connection, *, at: datetime, who: str, action: str, subject: str, reason: str | None
) -> None:
    """Write an entry in the transaction of its change.

    Time and address are those of the current request; ``at`` is for changes that the service makes by itself.
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


def record_request(connection: Connection, *, action: str, subject: str, reason: str | None = None) -> None:
    """Write an entry if a user or API key requested the change."""
    request = current_request()
    if request is not None and request.principal is not None:
        who = request.principal.name
        record(connection, at=request.at, who=who, action=action, subject=subject, reason=reason)
