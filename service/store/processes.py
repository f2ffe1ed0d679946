"""Who is at work on this database: every process writes itself down, again and again."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from service.core.process import Process, Report
from service.store.dialect import upsert
from service.store.engine import Database
from service.store.tables import processes
from wire.micros import micros, moment
from wire.words import ProcessRole

_FORGET_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class ProcessStore:
    """The roll of processes."""

    database: Database

    def report(self, process: Process) -> None:
        """Write down that a process is there, and how it is; forget those that left long ago."""
        row = {
            "name": process.name,
            "roles": ",".join(sorted(process.roles)),
            "since_us": micros(process.since),
            "seen_us": micros(process.seen),
            "report": json.dumps(asdict(process.report)),
        }
        with self.database.write() as connection:
            connection.execute(upsert(connection, processes, row, keys=["name"]))
            gone = micros(process.seen - _FORGET_AFTER)
            connection.execute(delete(processes).where(processes.c.seen_us < gone))

    def leave(self, name: str) -> None:
        """Strike a process off, because it ends."""
        with self.database.write() as connection:
            connection.execute(delete(processes).where(processes.c.name == name))

    def since(self, seen: datetime) -> list[Process]:
        """Return the processes that were seen at or after a moment of wall time, by name."""
        query = select(processes).where(processes.c.seen_us >= micros(seen)).order_by(processes.c.name)
        with self.database.read() as connection:
            rows = connection.execute(query).all()
        return [
            Process(
                row.name,
                frozenset(ProcessRole(role) for role in row.roles.split(",")),
                moment(row.since_us),
                moment(row.seen_us),
                _report(row.report),
            )
            for row in rows
        ]


def _report(body: str) -> Report:
    told = json.loads(body)
    return Report(**told | {"turns": tuple(told["turns"])})
