"""Leases and the process registry. Leases expire by the clock of the database, so hosts need not agree."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta

from sqlalchemy import Connection, TextClause, delete, select, text

from service.database.dialect import NOW_US, now_us, upsert
from service.database.engine import Database
from service.database.tables import leases, processes
from service.messaging.bus import Change
from service.messaging.change_codec import to_body
from service.messaging.process import HealthReport, Lease, Process, ProcessInfo
from wire.enums import ProcessRole
from wire.timestamps import from_us, to_us

_ACQUIRE = (
    "INSERT INTO leases (name, owner, expires_us) VALUES (:name, :owner, {now} + :ttl_us)"
    " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_us = excluded.expires_us"
    " WHERE leases.owner = excluded.owner OR leases.expires_us < {now}"
)


@dataclass(frozen=True)
class LeaseStore:
    """Each lease is held by at most one process."""

    database: Database

    def acquire(self, wanted: Iterable[Lease], owner: str, ttl: timedelta) -> set[Lease]:
        """Acquire or renew every lease that is free or the owner's; return those that are now the owner's."""
        held = set()
        with self.database.write() as connection:
            for lease in sorted(wanted):
                values = {"name": lease.value, "owner": owner, "ttl_us": ttl // timedelta(microseconds=1)}
                if connection.execute(_acquire(connection), values).rowcount:
                    held.add(lease)
        return held

    def release(self, owner: str) -> None:
        """Release every lease of the owner, so that another process need not wait."""
        with self.database.write() as connection:
            connection.execute(delete(leases).where(leases.c.owner == owner))


def _acquire(connection: Connection) -> TextClause:
    return text(_ACQUIRE.format(now=NOW_US[connection.dialect.name]))


_DELETE_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class ProcessRegistry:
    """Heartbeats of processes."""

    database: Database

    def report(self, process: ProcessInfo, report: HealthReport) -> None:
        """Store a heartbeat; delete processes that stopped long ago."""
        with self.database.write() as connection:
            row = {
                "name": process.name,
                "roles": ",".join(sorted(process.roles)),
                "since_us": to_us(process.since),
                "last_seen_us": now_us(connection),
                "report": json.dumps(asdict(report)),
            }
            connection.execute(upsert(connection, processes, row, keys=["name"]))
            connection.execute(delete(processes).where(processes.c.last_seen_us < _ago(connection, _DELETE_AFTER)))

    def remove(self, name: str) -> None:
        with self.database.write() as connection:
            connection.execute(delete(processes).where(processes.c.name == name))

    def recent(self, within: timedelta) -> list[Process]:
        """Return the processes with a heartbeat within a time span, by name."""
        query = select(processes).order_by(processes.c.name)
        with self.database.read() as connection:
            rows = connection.execute(query.where(processes.c.last_seen_us >= _ago(connection, within))).all()
        return [
            Process(
                row.name,
                frozenset(ProcessRole(role) for role in row.roles.split(",")),
                from_us(row.since_us),
                from_us(row.last_seen_us),
                _report(row.report),
            )
            for row in rows
        ]


def _ago(connection: Connection, span: timedelta) -> int:
    return now_us(connection) - span // timedelta(microseconds=1)


def _report(body: str) -> HealthReport:
    fields = json.loads(body)
    return HealthReport(**fields | {"leases": tuple(fields["leases"])})


CHANNEL = "alarmcast"
_NOTIFY = text(f"SELECT pg_notify('{CHANNEL}', :body)")


def notify(connection: Connection, change: Change, *, sender: str | None = None) -> None:
    """Send a change to all processes but the sender; on SQLite there are no others."""
    if connection.dialect.name != "sqlite":
        body = {"from": sender, **to_body(change)}
        connection.execute(_NOTIFY, {"body": json.dumps(body, separators=(",", ":"))})
