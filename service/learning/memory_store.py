"""Store the memory of every version: the windows of each machine kept for replay and for calibration."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from service.database.engine import Database
from service.database.tables import machines, memories, samples, tasks
from service.errors import ChampionChanged
from service.learning.candidate import Candidate
from service.learning.memory import Memory, TaskMemory
from service.learning.row_codec import RowValues, windows_from_rows
from wire.enums import MachineState


@dataclass(frozen=True)
class MemoryStore:
    """Each sample is stored once, however many versions have it in memory."""

    database: Database

    def get(self, version: int) -> Memory:
        """Return a version's memory without the machines that have been retired since."""
        learned = (
            select(tasks, machines.c.site, machines.c.machine)
            .join(machines, machines.c.id == tasks.c.machine_id)
            .where(tasks.c.version_id == version, machines.c.state != MachineState.RETIRED.value)
            .order_by(tasks.c.position)
        )
        remembered = (
            select(samples, memories.c.held_out)
            .join(memories, memories.c.sample_id == samples.c.id)
            .where(memories.c.version_id == version)
            .order_by(samples.c.at_us)
        )
        with self.database.read() as connection:
            order = connection.execute(learned).all()
            rows = connection.execute(remembered).all()
        held: dict[int, list[Row[Any]]] = {}
        replayed: dict[int, list[Row[Any]]] = {}
        for row in rows:
            (held if row.held_out else replayed).setdefault(row.machine_id, []).append(row)
        return Memory(
            {
                f"{task.site}/{task.machine}": TaskMemory(
                    windows=windows_from_rows(replayed.get(task.machine_id, [])),
                    held_out=windows_from_rows(held.get(task.machine_id, [])),
                    offered=task.offered,
                    frequency={int(code): count for code, count in json.loads(task.frequency).items()},
                )
                for task in order
            }
        )


def write_memory(connection: Connection, candidate: Candidate, *, version: int, rows: Mapping[str, int]) -> None:
    """Write a new version's memory inside a transaction; ``rows`` are the machines' ids.

    For older machines only the selection is written, for the new one its windows too.
    """
    links: list[dict[str, Any]] = []
    stored = _sample_ids(connection, candidate.parent)
    for machine, retained in candidate.retained.items():
        for moments, held_out in ((retained.replayed.tolist(), False), (retained.held_out.tolist(), True)):
            keys = [(rows[machine], at, held_out) for at in moments]
            ids = [stored[key] for key in keys if key in stored]
            if len(ids) < len(moments):
                raise ChampionChanged("A machine was erased while this was learned with it; it learns again.")
            links += [{"version_id": version, "sample_id": sample, "held_out": held_out} for sample in ids]
    for new, held_out in ((candidate.replayed, False), (candidate.held_out, True)):
        for sample in _insert_samples(connection, new, rows[candidate.machine]):
            links.append({"version_id": version, "sample_id": sample, "held_out": held_out})
    if links:
        connection.execute(insert(memories), links)
    _write_tasks(connection, candidate, version=version, rows=rows)


def _write_tasks(connection: Connection, candidate: Candidate, *, version: int, rows: Mapping[str, int]) -> None:
    query = select(tasks).where(tasks.c.version_id == candidate.parent)
    before = {row.machine_id: row for row in connection.execute(query)}
    older = [before[rows[machine]] for machine in candidate.retained]
    values = [{"machine_id": row.machine_id, "offered": row.offered, "frequency": row.frequency} for row in older]
    values.append({"machine_id": rows[candidate.machine], **candidate.task})
    connection.execute(
        insert(tasks), [{"version_id": version, "position": place, **row} for place, row in enumerate(values)]
    )


def _sample_ids(connection: Connection, version: int | None) -> dict[tuple[int, int, bool], int]:
    """Return the ids of all samples of a version, by machine, time and use; one query for all machines."""
    query = (
        select(samples.c.machine_id, samples.c.at_us, memories.c.held_out, samples.c.id)
        .join(memories, memories.c.sample_id == samples.c.id)
        .where(memories.c.version_id == version)
    )
    return {(machine, at, held_out): number for machine, at, held_out, number in connection.execute(query)}


def _insert_samples(connection: Connection, new: list[RowValues], machine: int) -> Sequence[int]:
    """Insert windows of a machine and return their ids, in no order.

    The ids are selected afterwards, because inserts that return ids go row by row. The lock on promotions keeps
    other commits out.
    """
    if not new:
        return []
    own = select(samples.c.id).where(samples.c.machine_id == machine)
    last = connection.execute(own.order_by(samples.c.id.desc()).limit(1)).scalar() or 0
    connection.execute(insert(samples), [row | {"machine_id": machine} for row in new])
    return connection.execute(own.where(samples.c.id > last)).scalars().all()
