"""Whose turn it is: held for a while by one process, taken over by another once that while is over.

The while is measured by the database's clock alone, so hosts need not agree on the time.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta

from sqlalchemy import Connection, TextClause, delete, select, text

from service.database.dialect import NOW_US, now_us, upsert
from service.database.engine import Database
from service.database.tables import leases, processes
from service.messaging.process import HealthReport, Lease, Process, ProcessInfo
from wire.enums import ProcessRole
from wire.timestamps import from_us, to_us

_HOLD = (
    "INSERT INTO leases (name, owner, expires_us) VALUES (:name, :owner, {now} + :lease_us)"
    " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_us = excluded.expires_us"
    " WHERE leases.owner = excluded.owner OR leases.expires_us < {now}"
)


@dataclass(frozen=True)
class LeaseStore:
    """Gives turns to one process at a time."""

    database: Database

    def acquire(self, wanted: Iterable[Lease], owner: str, lease: timedelta) -> set[Lease]:
        """Take or keep every turn that is free or already the owner's; return those that are now the owner's."""
        held = set()
        with self.database.write() as connection:
            for turn in sorted(wanted):
                values = {"name": turn.value, "owner": owner, "lease_us": lease // timedelta(microseconds=1)}
                if connection.execute(_hold(connection), values).rowcount:
                    held.add(turn)
        return held

    def release(self, owner: str) -> None:
        """Give back every turn that is the owner's, so that another need not wait."""
        with self.database.write() as connection:
            connection.execute(delete(leases).where(leases.c.owner == owner))


def _hold(connection: Connection) -> TextClause:
    return text(_HOLD.format(now=NOW_US[connection.dialect.name]))


_FORGET_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class ProcessRegistry:
    """The roll of processes."""

    database: Database

    def report(self, member: ProcessInfo, report: HealthReport) -> None:
        """Write down that a process is there, and how it is; forget those that left long ago."""
        with self.database.write() as connection:
            row = {
                "name": member.name,
                "roles": ",".join(sorted(member.roles)),
                "since_us": to_us(member.since),
                "last_seen_us": now_us(connection),
                "report": json.dumps(asdict(report)),
            }
            connection.execute(upsert(connection, processes, row, keys=["name"]))
            connection.execute(delete(processes).where(processes.c.last_seen_us < _ago(connection, _FORGET_AFTER)))

    def remove(self, name: str) -> None:
        """Strike a process off, because it ends."""
        with self.database.write() as connection:
            connection.execute(delete(processes).where(processes.c.name == name))

    def recent(self, within: timedelta) -> list[Process]:
        """Return the processes that were seen within a while until now, by name."""
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
    told = json.loads(body)
    return HealthReport(**told | {"leases": tuple(told["leases"])})
