"""Who is at work on this database: every process writes itself down, again and again, by the database's clock."""

import json
from dataclasses import asdict, dataclass
from datetime import timedelta

from sqlalchemy import Connection, delete, select

from service.database.dialect import now_us, upsert
from service.database.engine import Database
from service.database.tables import processes
from service.messaging.process import HealthReport, Process, ProcessInfo
from wire.enums import ProcessRole
from wire.timestamps import from_us, to_us

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
