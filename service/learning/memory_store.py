"""Store the memory of every version: the windows of each machine kept for replay and for calibration."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from service.database.engine import Database
from service.database.tables import machines, samples, tasks
from service.errors import ChampionChanged
from service.learning.candidate import Candidate
from service.learning.memory import Memory, TaskMemory
from service.learning.row_codec import HELD_OUT, REPLAYED, pack_marks, samples_from_row, unpack_marks
from wire.enums import MachineState


@dataclass(frozen=True)
class MemoryStore:
    """The windows of a machine are stored once, however many versions have some of them in memory."""

    database: Database

    def get(self, version: int) -> Memory:
        """Return a version's memory without the machines that have been retired since."""
        learned = (
            select(tasks, samples.c.features, samples.c.windows, machines.c.site, machines.c.machine)
            .join(machines, machines.c.id == tasks.c.machine_id)
            .join(samples, samples.c.id == tasks.c.samples_id)
            .where(tasks.c.version_id == version, machines.c.state != MachineState.RETIRED.value)
            .order_by(tasks.c.position)
        )
        with self.database.read() as connection:
            return Memory({f"{row.site}/{row.machine}": _task(row) for row in connection.execute(learned)})


def _task(row: Row[Any]) -> TaskMemory:
    windows, marks = samples_from_row(row), unpack_marks(row.kept)
    return TaskMemory(
        windows=windows.take(marks == REPLAYED),
        held_out=windows.take(marks == HELD_OUT),
        offered=row.offered,
        frequency={int(code): count for code, count in json.loads(row.frequency).items()},
    )


def write_memory(connection: Connection, candidate: Candidate, *, version: int, rows: Mapping[str, int]) -> None:
    """Write a new version's memory inside a transaction; ``rows`` are the machines' ids.

    For older machines only the selection is written, for the new one its windows too.
    """
    query = select(tasks).where(tasks.c.version_id == candidate.parent, tasks.c.samples_id.is_not(None))
    before = {row.machine_id: row for row in connection.execute(query)}
    if any(rows[machine] not in before for machine in candidate.retained):
        raise ChampionChanged("A machine was erased while this was learned with it; it learns again.")
    values = []
    for machine, retained in candidate.retained.items():
        row = before[rows[machine]]
        kept = pack_marks(retained.marks(unpack_marks(row.kept)))
        values.append(row._asdict() | {"kept": kept})
    new = rows[candidate.machine]
    stored = connection.execute(insert(samples).values(machine_id=new, **candidate.samples))
    values.append({"machine_id": new, "samples_id": stored.inserted_primary_key[0], **candidate.task})  # type: ignore[index]
    connection.execute(
        insert(tasks), [row | {"version_id": version, "position": place} for place, row in enumerate(values)]
    )
