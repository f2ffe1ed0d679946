"""Machines, the state of their agents, and machines that publish without being registered."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, delete, func, or_, select, text, update

from service.database.dialect import insert_rows, upsert
from service.database.engine import Database
from service.database.tables import agents, machines, unregistered_machines
from service.errors import unknown_machine
from service.http.message import decoded
from service.machines.models import Agent, Machine, UnregisteredMachine
from wire.enums import MachineState
from wire.identity import MachineId
from wire.state import Note
from wire.timestamps import from_us, to_us

_STATE_COLUMNS = (
    "online",
    "agent",
    "epoch",
    "spooled",
    "skew_ms",
    "state_us",
    "skipped",
    "last_skipped",
    "last_skipped_us",
    "warning",
    "warning_us",
)
_MOST_FORGOTTEN = 2_000  # unregistered machines deleted in one transaction
_LIFE_COLUMNS = ("machine_id", "last_seen_us", "first_seen_us", *_STATE_COLUMNS)
# An event has no agent state; the stored one is kept.
_LIVES = "(machine_id) DO UPDATE SET last_seen_us = excluded.last_seen_us, " + ", ".join(
    f"{name} = CASE WHEN excluded.agent IS NULL THEN agents.{name} ELSE excluded.{name} END"
    for name in _STATE_COLUMNS
)
# Machine by machine, one look at an index's end for each; a maximum over all of them would read everything.
_LATEST = (
    text("SELECT max((SELECT max(at_us) FROM events WHERE machine_id = machines.id AND flag = 0)) FROM machines"),
    text("SELECT max(last_seen_us) FROM agents"),
    text("SELECT max((SELECT max(as_of_us) FROM forecasts WHERE machine_id = machines.id)) FROM machines"),
)


@dataclass(frozen=True)
class MachineStore:
    """Who is enrolled, and who would like to be."""

    database: Database

    def get(self, machine: MachineId) -> Machine:
        """Return a machine, or raise ``NotFound`` saying how to register it."""
        found = self.find(machine)
        if found is None:
            raise unknown_machine(machine)
        return found

    def find(self, machine: MachineId) -> Machine | None:
        """Return a machine, or None if it is not registered."""
        query = select(machines).where(machines.c.site == machine.site, machines.c.machine == machine.machine)
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        return _machine(row) if row else None

    def all(self, *, retired: bool = False) -> list[Machine]:
        """Return every machine by site and name, with ``retired`` those too that have been let go."""
        query = select(machines).order_by(machines.c.site, machines.c.machine)
        if not retired:
            query = query.where(machines.c.state != MachineState.RETIRED.value)
        with self.database.read() as connection:
            return [_machine(row) for row in connection.execute(query)]

    def agents(self) -> dict[MachineId, Agent]:
        """Return the last known state of every agent that ever published."""
        query = select(machines.c.site, machines.c.machine, agents).join_from(machines, agents)
        with self.database.read() as connection:
            return {MachineId(row.site, row.machine): _agent(row) for row in connection.execute(query)}

    def agents_with_notes(self, since: datetime) -> dict[MachineId, Agent]:
        """Return the agents that had a row they could not read, a warning or a duplicate at or after a moment."""
        since_us = to_us(since)
        noted = [agents.c[name] >= since_us for name in ("last_skipped_us", "warning_us", "duplicate_us")]
        query = (
            select(machines.c.site, machines.c.machine, agents)
            .join_from(machines, agents)
            .where(or_(*noted), machines.c.state != MachineState.RETIRED.value)
            .order_by(machines.c.site, machines.c.machine)
        )
        with self.database.read() as connection:
            return {MachineId(row.site, row.machine): _agent(row) for row in connection.execute(query)}

    def agent(self, machine: Machine) -> Agent | None:
        """Return the last known state of a machine's agent."""
        with self.database.read() as connection:
            row = connection.execute(select(agents).where(agents.c.machine_id == machine.row_id)).one_or_none()
        return _agent(row) if row else None

    def unregistered(self) -> list[UnregisteredMachine]:
        """Return who speaks on a topic of a machine that is not registered, most recent first."""
        with self.database.read() as connection:
            rows = connection.execute(
                select(unregistered_machines).order_by(unregistered_machines.c.last_us.desc())
            )
            return [
                UnregisteredMachine(MachineId(row.site, row.machine), from_us(row.first_us), from_us(row.last_us))
                for row in rows
            ]

    def latest_moment(self) -> datetime | None:
        """Return the latest plant time that the store knows of: an event, a sign of life or a forecast."""
        with self.database.read() as connection:
            moments = [at for query in _LATEST if (at := connection.execute(query).scalar()) is not None]
        return from_us(max(moments)) if moments else None


def update_last_seen(
    connection: Connection, states: Mapping[int, Agent], seen: Collection[int], at_us: int
) -> None:
    """Store agent states inside a transaction, and the last contact of machines that sent only events.

    Once an agent has sent a state, only a state makes it online.
    """
    rows = [_life(connection, row, states.get(row), at_us) for row in sorted(states.keys() | seen)]
    insert_rows(connection, agents, _LIFE_COLUMNS, rows, on_conflict=_LIVES)


def _life(connection: Connection, row: int, agent: Agent | None, at_us: int) -> tuple[Any, ...]:
    if agent is None:
        return (row, at_us, at_us, True, *[None] * (len(_STATE_COLUMNS) - 1))
    at_us = to_us(agent.last_seen_at)
    epoch = agent.epoch.hex if agent.epoch and connection.dialect.name == "sqlite" else agent.epoch
    state_us = to_us(agent.state_at) if agent.state_at else at_us
    state = (agent.online, agent.version, epoch, agent.spooled, agent.skew_ms, state_us, agent.skipped)
    return (row, at_us, at_us, *state, *_note_columns(agent.last_skipped), *_note_columns(agent.warning))


def record_duplicate_agents(connection: Connection, duplicate_agents: Mapping[int, Note]) -> None:
    """Note inside a transaction that two agents speak in the name of machines."""
    for row, duplicate in sorted(duplicate_agents.items()):
        text, at_us = _note_columns(duplicate)
        changed = update(agents).where(agents.c.machine_id == row).values(duplicate=text, duplicate_us=at_us)
        connection.execute(changed)


def _note_columns(note: Note | None) -> tuple[str | None, int | None]:
    return (None, None) if note is None else (note.text, to_us(note.at))


def _note(text: str | None, at_us: int | None) -> Note | None:
    # Not judged again: whatever stands in the database is shown, as text.
    return None if text is None or at_us is None else Note.model_construct(text=text, at=from_us(at_us))


def record_unregistered(connection: Connection, found: Collection[MachineId], at_us: int, *, most: int) -> int:
    """Store unregistered machines inside a transaction, only the newest; return how many were left out."""
    if not found:
        return 0
    chosen = sorted(found)[:most]
    for site, machine in chosen:
        row = {"site": site, "machine": machine, "first_us": at_us, "last_us": at_us}
        connection.execute(
            upsert(connection, unregistered_machines, row, keys=["site", "machine"], once=["first_us"])
        )
    return len(found) - len(chosen) + _delete_oldest_unregistered(connection, most)


def _delete_oldest_unregistered(connection: Connection, most: int) -> int:
    """Delete the oldest beyond the limit, without waiting for locked rows."""
    excess = connection.execute(select(func.count()).select_from(unregistered_machines)).scalar_one() - most
    if excess <= 0:
        return 0
    oldest = select(unregistered_machines.c.site, unregistered_machines.c.machine).order_by(
        unregistered_machines.c.last_us, unregistered_machines.c.site, unregistered_machines.c.machine
    )
    oldest = oldest.limit(min(excess, _MOST_FORGOTTEN)).with_for_update(skip_locked=True)
    keys = [{"old_site": row.site, "old_machine": row.machine} for row in connection.execute(oldest)]
    if keys:
        chosen = and_(
            unregistered_machines.c.site == bindparam("old_site"),
            unregistered_machines.c.machine == bindparam("old_machine"),
        )
        connection.execute(delete(unregistered_machines).where(chosen), keys)
    return len(keys)


def _machine(row: Row[Any]) -> Machine:
    return Machine(
        row_id=row.id,
        id=MachineId(row.site, row.machine),
        name=row.name,
        time_zone=row.time_zone,
        registered_at=from_us(row.registered_us),
        state=MachineState(row.state),
        reason=decoded(row.reason),
        learned_at=from_us(row.learned_us) if row.learned_us is not None else None,
    )


def _agent(row: Row[Any]) -> Agent:
    return Agent(
        online=row.online,
        last_seen_at=from_us(row.last_seen_us),
        version=row.agent,
        epoch=row.epoch,
        spooled=row.spooled,
        skew_ms=row.skew_ms,
        since=from_us(row.first_seen_us) if row.first_seen_us is not None else None,
        state_at=from_us(row.state_us) if row.state_us is not None else None,
        skipped=row.skipped or 0,
        last_skipped=_note(row.last_skipped, row.last_skipped_us),
        warning=_note(row.warning, row.warning_us),
        duplicate=_note(row.duplicate, row.duplicate_us),
    )


_CACHE_TTL_S = 1.0  # seconds; who was enrolled or retired just now is known this soon


class MachineCache:
    """A picture of the fleet, taken anew at most once a second; a retired machine is a stranger again."""

    def __init__(self, machines: MachineStore, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._machines, self._monotonic = machines, monotonic
        self._known: dict[MachineId, Machine] = {}
        self._until = float("-inf")

    def find(self, machine: MachineId) -> Machine | None:
        """Return the machine if it is enrolled."""
        if self._monotonic() >= self._until:
            self._known = {one.id: one for one in self._machines.all()}
            self._until = self._monotonic() + _CACHE_TTL_S
        return self._known.get(machine)


_MACHINES_A_STATEMENT = 900  # SQLite takes at least 999 values in one statement
_SQLITE = "SELECT id FROM machines WHERE id IN ({marks}) AND state <> 'retired'"
# Who is retired or erased takes its row for itself; a commit that has seen it here ends before that.
_POSTGRESQL = "SELECT id FROM machines WHERE id = ANY(%s) AND state <> 'retired' ORDER BY id FOR KEY SHARE"


def active_machines(connection: Connection, chosen: Collection[int]) -> set[int]:
    """Return which of these machines are neither retired nor erased, without locking them."""
    active = machines.c.state != MachineState.RETIRED.value
    return set(connection.execute(select(machines.c.id).where(machines.c.id.in_(chosen), active)).scalars())


def absent(connection: Connection, machines: Collection[int]) -> set[int]:
    """Return which of these machines are retired or erased; the others stay until the transaction ends.

    Straight to the driver: every commit asks this.
    """
    wanted = sorted(machines)
    if not wanted:
        return set()
    if connection.dialect.name != "sqlite":
        return set(wanted).difference(connection.exec_driver_sql(_POSTGRESQL, (wanted,)).scalars())
    missing = set(wanted)
    for start in range(0, len(wanted), _MACHINES_A_STATEMENT):
        some = tuple(wanted[start : start + _MACHINES_A_STATEMENT])
        statement = _SQLITE.format(marks=", ".join("?" * len(some)))
        missing.difference_update(connection.exec_driver_sql(statement, some).scalars())
    return missing
