"""Machines, how their agents are, and who knocks without being registered."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from service.core.machine import Agent, Knock, Machine, unknown_machine
from service.store.dialect import upsert
from service.store.engine import Database
from service.store.tables import agents, epochs, events, forecasts, knocks, machines
from wire.identity import MachineId
from wire.micros import micros, moment
from wire.words import MachineState


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
        """Return how the agents were when last heard, for those that ever were."""
        query = select(machines.c.site, machines.c.machine, agents).join_from(machines, agents)
        with self.database.read() as connection:
            return {MachineId(row.site, row.machine): _agent(row) for row in connection.execute(query)}

    def agent(self, machine: Machine) -> Agent | None:
        """Return how one machine's agent was when last heard."""
        with self.database.read() as connection:
            row = connection.execute(select(agents).where(agents.c.machine_id == machine.row)).one_or_none()
        return _agent(row) if row else None

    def knocks(self) -> list[Knock]:
        """Return who speaks on a topic of a machine that is not registered, most recent first."""
        with self.database.read() as connection:
            rows = connection.execute(select(knocks).order_by(knocks.c.last_us.desc()))
            return [
                Knock(MachineId(row.site, row.machine), moment(row.first_us), moment(row.last_us)) for row in rows
            ]

    def latest_moment(self) -> datetime | None:
        """Return the latest plant time that the store knows of: an event, a sign of life or a forecast."""
        latest = (
            select(func.max(events.c.at_us)).where(events.c.flag == 0),
            select(func.max(agents.c.heard_us)),
            select(func.max(forecasts.c.as_of_us)),
        )
        with self.database.read() as connection:
            moments = [at for query in latest if (at := connection.execute(query).scalar()) is not None]
        return moment(max(moments)) if moments else None


def record_signs_of_life(connection: Connection, rows: Iterable[tuple[int, Agent]]) -> None:
    """Note inside a transaction how agents are; one that spoke without telling keeps what it told before."""
    for machine_id, agent in rows:
        heard: dict[str, Any] = {"online": agent.online, "heard_us": micros(agent.heard_at)}
        if agent.version is not None:
            heard |= {
                "agent": agent.version,
                "epoch": agent.epoch,
                "spooled": agent.spooled,
                "skew_ms": agent.skew_ms,
            }
        first = {"machine_id": machine_id, "since_us": heard["heard_us"], **heard}
        connection.execute(upsert(connection, agents, first, keys=["machine_id"], once=["since_us"]))


def record_knocks(connection: Connection, knocking: Iterable[MachineId], at_us: int) -> None:
    """Note inside a transaction who knocked."""
    for machine in knocking:
        seen = connection.execute(
            update(knocks)
            .where(knocks.c.site == machine.site, knocks.c.machine == machine.machine)
            .values(last_us=at_us)
        )
        if not seen.rowcount:
            connection.execute(
                insert(knocks).values(site=machine.site, machine=machine.machine, first_us=at_us, last_us=at_us)
            )


def epoch_number(connection: Connection, machine_id: int, epoch: object) -> int:
    """Return the short number of an epoch, giving it one at its first appearance."""
    query = select(epochs.c.id).where(epochs.c.machine_id == machine_id, epochs.c.epoch == epoch)
    known = connection.execute(query).scalar()
    if known is not None:
        return int(known)
    connection.execute(insert(epochs).values(machine_id=machine_id, epoch=epoch))
    return int(connection.execute(query).scalar_one())


def _machine(row: Row[Any]) -> Machine:
    return Machine(
        row=row.id,
        id=MachineId(row.site, row.machine),
        name=row.name,
        time_zone=row.time_zone,
        registered_at=moment(row.registered_us),
        state=MachineState(row.state),
        reason=row.reason,
        learned_at=moment(row.learned_us) if row.learned_us is not None else None,
    )


def _agent(row: Row[Any]) -> Agent:
    return Agent(
        online=row.online,
        heard_at=moment(row.heard_us),
        version=row.agent,
        epoch=row.epoch,
        spooled=row.spooled,
        skew_ms=row.skew_ms,
        since=moment(row.since_us) if row.since_us is not None else None,
    )
