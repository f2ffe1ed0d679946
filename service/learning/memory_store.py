"""The memory of every version: which windows of which machine it keeps for replay and for calibration."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, insert, select

from forecasting import history
from service.database.engine import Database
from service.database.tables import machines, memories, samples, tasks
from service.errors import ChampionChanged, Unavailable
from service.learning.array_codec import FLOAT32, INT32
from service.learning.candidate_store import CandidateRows, RowValues
from service.learning.memory import Memory, TaskMemory
from service.learning.windows import WindowSet
from wire.enums import MachineState


@dataclass(frozen=True)
class MemoryStore:
    """Memories as the store keeps them: a sample once, however many versions remember it."""

    database: Database

    def get(self, version: int) -> Memory:
        """Return a version's memory without the machines that have been retired since."""
        learned = (
            select(tasks, machines.c.site, machines.c.machine)
            .join(machines, machines.c.id == tasks.c.machine_id)
            .where(tasks.c.version_id == version, machines.c.state != MachineState.RETIRED.value)
            .order_by(tasks.c.position)
        )
        chosen = (
            select(samples, memories.c.held_out)
            .join(memories, memories.c.sample_id == samples.c.id)
            .where(memories.c.version_id == version)
            .order_by(samples.c.at_us)
        )
        with self.database.read() as connection:
            order = connection.execute(learned).all()
            rows = connection.execute(chosen).all()
        held: dict[int, list[Row[Any]]] = {}
        replayed: dict[int, list[Row[Any]]] = {}
        for row in rows:
            (held if row.held_out else replayed).setdefault(row.machine_id, []).append(row)
        return Memory(
            {
                f"{task.site}/{task.machine}": TaskMemory(
                    windows=_windows(replayed.get(task.machine_id, [])),
                    held_out=_windows(held.get(task.machine_id, [])),
                    offered=task.offered,
                    frequency={int(code): count for code, count in json.loads(task.frequency).items()},
                )
                for task in order
            }
        )


def write_memory(connection: Connection, parcel: CandidateRows, *, version: int, rows: Mapping[str, int]) -> None:
    """Write a new version's memory inside a transaction; ``rows`` are the machines' short numbers.

    Of older machines only the choice is written, of the new one its windows too.
    """
    links: list[dict[str, Any]] = []
    known = _known(connection, parcel.parent)
    for machine, kept in parcel.kept.items():
        for moments, held_out in ((kept.replayed.tolist(), False), (kept.held_out.tolist(), True)):
            keys = [(rows[machine], at, held_out) for at in moments]
            chosen = [known[key] for key in keys if key in known]
            if len(chosen) < len(moments):
                raise ChampionChanged("A machine was erased while this was learned with it; it learns again.")
            links += [{"version_id": version, "sample_id": one, "held_out": held_out} for one in chosen]
    for new, held_out in ((parcel.replayed, False), (parcel.held_out, True)):
        for number in _insert_samples(connection, new, rows[parcel.machine]):
            links.append({"version_id": version, "sample_id": number, "held_out": held_out})
    if links:
        connection.execute(insert(memories), links)
    _write_tasks(connection, parcel, version=version, rows=rows)


def _write_tasks(connection: Connection, parcel: CandidateRows, *, version: int, rows: Mapping[str, int]) -> None:
    query = select(tasks).where(tasks.c.version_id == parcel.parent)
    before = {row.machine_id: row for row in connection.execute(query)}
    known = [before[rows[machine]] for machine in parcel.kept]
    values = [{"machine_id": row.machine_id, "offered": row.offered, "frequency": row.frequency} for row in known]
    values.append({"machine_id": rows[parcel.machine], **parcel.task})
    connection.execute(
        insert(tasks), [{"version_id": version, "position": place, **row} for place, row in enumerate(values)]
    )


def _known(connection: Connection, version: int | None) -> dict[tuple[int, int, bool], int]:
    """Return the numbers of all that a version remembers, by machine, moment and purpose.

    In one look: one for each machine would go through the whole memory every time.
    """
    query = (
        select(samples.c.machine_id, samples.c.at_us, memories.c.held_out, samples.c.id)
        .join(memories, memories.c.sample_id == samples.c.id)
        .where(memories.c.version_id == version)
    )
    return {(machine, at, held_out): number for machine, at, held_out, number in connection.execute(query)}


def _insert_samples(connection: Connection, new: list[RowValues], machine: int) -> Sequence[int]:
    """Write windows of a machine and return their numbers, in no order.

    Looked up afterwards, because rows that tell their numbers are inserted one by one. Nobody else writes any
    meanwhile: who commits a version holds the promotions.
    """
    if not new:
        return []
    own = select(samples.c.id).where(samples.c.machine_id == machine)
    last = connection.execute(own.order_by(samples.c.id.desc()).limit(1)).scalar() or 0
    connection.execute(insert(samples), [row | {"machine_id": machine} for row in new])
    return connection.execute(own.where(samples.c.id > last)).scalars().all()


def _windows(rows: Sequence[Row[Any]]) -> WindowSet:
    """Return stored windows side by side, over every code that any of them knows."""
    if any(row.features != history.VERSION for row in rows):
        raise Unavailable("The memory was written by another version of Alarmcast; learn its machines anew.")
    seen, came, followed = (
        _Ragged.of([getattr(row, name) for row in rows]) for name in ("codes", "outcomes", "tracked")
    )
    figures = np.frombuffer(b"".join(row.history for row in rows), dtype=FLOAT32)
    codes = np.union1d(seen.values, came.values)
    tracked = np.unique(followed.values)
    width = len(figures) // max(len(followed.values), 1)
    counts = np.zeros((len(rows), len(codes)), dtype=np.int32)
    outcomes = np.zeros((len(rows), len(codes)), dtype=np.bool_)
    past = np.zeros((len(rows), len(tracked), width), dtype=np.float32)
    counts[seen.rows, np.searchsorted(codes, seen.values)] = _ints(b"".join(row.counts for row in rows))
    outcomes[came.rows, np.searchsorted(codes, came.values)] = True
    past[followed.rows, np.searchsorted(tracked, followed.values)] = figures.reshape(len(followed.values), width)
    context = [np.frombuffer(row.context, dtype=FLOAT32) for row in rows]
    return WindowSet(
        at=np.array([row.at_us for row in rows], dtype=np.int64),
        codes=codes,
        counts=counts,
        outcomes=outcomes,
        tracked=tracked,
        history=past,
        context=np.stack(context) if context else np.zeros((0, 0), dtype=np.float32),
    )


@dataclass(frozen=True, eq=False)
class _Ragged:
    """Numbers of many rows end to end, and whose each of them is: one look at all instead of one at each."""

    values: NDArray[np.int64]
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, cells: Sequence[bytes]) -> "_Ragged":
        lengths = [len(cell) // INT32.itemsize for cell in cells]
        return cls(_ints(b"".join(cells)), np.repeat(np.arange(len(cells)), lengths))


def _ints(body: bytes) -> NDArray[np.int64]:
    return np.frombuffer(body, dtype=INT32).astype(np.int64)
