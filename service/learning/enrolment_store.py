"""Machines come and go: registered together with their job, retired in one transaction, erased in pieces."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select, text, update

from service.auth.audit_store import record
from service.broker_access.store import revoke_within
from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import (
    acknowledgements,
    agents,
    answers,
    catalogue,
    epochs,
    evaluation_results,
    forecasts,
    gaps,
    holdout_sets,
    idempotency,
    limit_counts,
    machines,
    notifications,
    quarantine,
    samples,
    scoring_progress,
    shelved_alarms,
    tasks,
    unregistered_machines,
)
from service.errors import Conflict
from service.http.message import Message, decoded
from service.learning.job_store import cancel_jobs, latest_job, open_job
from service.learning.models import Enrolled, NewMachine
from service.machines.catalogue import parse_catalogue
from service.machines.catalogue_store import CHANGE, merge_into
from service.machines.models import Machine
from wire.enums import JobKind, JobState, MachineState
from wire.timestamps import to_us

# Each kind has its own partial index, used only if the query has the index's own words; together neither would be.
_KINDS = ("flag = 0", "flag <> 0")
_ALL_EVENTS = "DELETE FROM events WHERE machine_id = :machine AND {kind}"
# On SQLite everybody waits for the one who writes, so it writes a little at a time.
_SOME_EVENTS = (
    "DELETE FROM events WHERE {kind} AND (epoch_id, seq) IN (SELECT epoch_id, seq FROM events"
    " WHERE machine_id = :machine AND {kind} LIMIT :most)"
)
_PIECE = 10_000
_RETIRED = Message.of("The machine was retired.")
_ERASED = Message.of("The machine was erased.")
_ERASING = "It is being erased"
_VERSION = re.compile(r"\bv(\d+)\b")
_COLUMNS = ("site", "machine", "name", "time_zone", "registered_us", "state")


@dataclass(frozen=True)
class EnrolmentStore:
    """Who is enrolled, once, however often it is asked for."""

    database: Database

    def enrol(self, new: NewMachine, *, key: str | None, who: str, at: datetime, plant_at: datetime) -> Enrolled:
        """Register a machine with its job, or return those it has; the same key always gets the same answer."""
        with self.database.write() as connection:
            known = self._answered(connection, new, key)
            if known is not None:
                return Enrolled(known, is_new=False)
            change = merge_into(connection, parse_catalogue(new.catalogue)) if new.catalogue else None
            if change:
                record(connection, at=plant_at, who=who, action=CHANGE, subject=str(change), reason=None)
            machine, is_new = _registered(connection, new, plant_at=plant_at)
            job = None if is_new else latest_job(connection, machine)
            if job is None or (not job.is_open and _may_try_again(connection, machine)):
                job = open_job(connection, machine, JobKind.ENROL, JobState.COLLECTING, at=at)
                record(connection, at=plant_at, who=who, action="enrol", subject=str(new.id), reason=None)
            if key is not None:
                row = (key, new.fingerprint, job.id, to_us(at))
                insert_rows(connection, idempotency, ("key", "request", "job_id", "created_us"), [row])
                self._answered(connection, new, key)  # a concurrent request may have used the key
        return Enrolled(job.id, is_new=is_new)

    def retire(self, machine: Machine, *, who: str, at: datetime, plant_at: datetime, reason: str | None) -> None:
        """Retire a machine: no forecasts, no replay, no evaluation; its data stays until it is erased.

        Its credentials are revoked too; if that fails at the broker, reconciliation repeats it.
        """
        with self.database.write() as connection:
            _held(connection, machine.row_id)
            cancel_jobs(connection, machine.row_id, at=at, plant_at=plant_at, why=_RETIRED)
            _set_state(connection, machine.row_id, MachineState.RETIRED)
            revoke_within(connection, machine, at=plant_at, who=who, reason=reason)
            record(connection, at=plant_at, who=who, action="retire", subject=str(machine.id), reason=reason)

    def erase(self, machine: Machine, *, who: str, at: datetime, plant_at: datetime, reason: str) -> list[str]:
        """Delete all data of a machine, and return which versions had learned from it.

        First nothing of it is taken any more, then what there is goes in pieces, so that others need not wait.
        Whatever ends this half-way: to ask for it again is harmless and finishes it.
        """
        versions = self._begin_to_erase(machine, who=who, at=at, plant_at=plant_at, reason=reason)
        for kind in _KINDS:
            while self._erase_events(kind, machine.row_id):
                pass
        with self.database.write() as connection:
            _held(connection, machine.row_id)
            _erase(connection, machine.row_id)
            _set_state(connection, machine.row_id, MachineState.RETIRED, reason=f"Erased; {_learned(versions)}.")
        return versions

    def _begin_to_erase(
        self, machine: Machine, *, who: str, at: datetime, plant_at: datetime, reason: str
    ) -> list[str]:
        """Let a machine go: a commit that is storing its events ends first, and every later one leaves it out."""
        chosen = machine.row_id
        with self.database.write() as connection:
            known = _held(connection, chosen)
            query = select(tasks.c.version_id).where(tasks.c.machine_id == chosen)
            before = _VERSION.findall(_reason(known)) if known.state == MachineState.RETIRED.value else ()
            numbers = {*connection.execute(query).scalars(), *map(int, before)}
            versions = [f"v{number}" for number in sorted(numbers)]
            cancel_jobs(connection, chosen, at=at, plant_at=plant_at, why=_ERASED)
            revoke_within(connection, machine, at=plant_at, who=who, reason=reason)
            begun = f"{_ERASING}; {_learned(versions)}. Erase it again if this does not end."
            _set_state(connection, chosen, MachineState.RETIRED, reason=begun)
            learned = f"learned by {', '.join(versions)}" if versions else "learned by no version"
            record(
                connection,
                at=plant_at,
                who=who,
                action="erase",
                subject=str(machine.id),
                reason=f"{reason} ({learned})",
            )
        return versions

    def _erase_events(self, kind: str, machine: int) -> int:
        sql, values = _ALL_EVENTS, {"machine": machine}
        if self.database.is_sqlite:
            sql, values = _SOME_EVENTS, values | {"most": _PIECE}
        with self.database.write() as connection:
            return connection.execute(text(sql.format(kind=kind)), values).rowcount

    def _answered(self, connection: Connection, new: NewMachine, key: str | None) -> int | None:
        if key is None:
            return None
        row = connection.execute(select(idempotency).where(idempotency.c.key == key)).one_or_none()
        if row is None:
            return None
        if row.request != new.fingerprint:
            raise Conflict("This Idempotency-Key was used for another request; take a new one.")
        return int(row.job_id)


def _registered(connection: Connection, new: NewMachine, *, plant_at: datetime) -> tuple[int, bool]:
    site, name = new.id
    state = MachineState.REGISTERED.value
    row = (site, name, new.name or name, new.time_zone or "UTC", to_us(plant_at), state)
    is_new = insert_rows(connection, machines, _COLUMNS, [row]) > 0
    query = select(machines).where(machines.c.site == site, machines.c.machine == name)
    known = connection.execute(query.with_for_update()).one()
    if known.state == MachineState.RETIRED.value:
        if _reason(known).startswith(_ERASING):
            raise Conflict(f"{new.id} is being erased. Enrol it when that has ended, or erase it again.")
        kept = {"name": new.name or known.name, "time_zone": new.time_zone or known.time_zone}
        values = {**kept, "state": state, "reason": None, "learned_us": None}
        connection.execute(update(machines).where(machines.c.id == known.id).values(**values))
    elif (new.name or known.name, new.time_zone or known.time_zone) != (known.name, known.time_zone):
        raise Conflict(
            f"{new.id} is registered already, as {known.name!r} in {known.time_zone}. Leave name and time zone "
            "out to keep them; to change them, retire the machine and enrol it again."
        )
    connection.execute(
        delete(unregistered_machines).where(
            unregistered_machines.c.site == site, unregistered_machines.c.machine == name
        )
    )
    return known.id, is_new or known.state == MachineState.RETIRED.value


def _may_try_again(connection: Connection, machine: int) -> bool:
    state = connection.execute(select(machines.c.state).where(machines.c.id == machine)).scalar_one()
    return bool(state == MachineState.FAILED.value)


def _set_state(connection: Connection, machine: int, state: MachineState, reason: str | None = None) -> None:
    values = {"state": state.value, "reason": Message.of(reason).encoded() if reason else None}
    connection.execute(update(machines).where(machines.c.id == machine).values(**values))


def _reason(machine: Row[Any]) -> str:
    return str(decoded(machine.reason) or "")


def _held(connection: Connection, machine: int) -> Row[Any]:
    """Return a machine's row, locked until the transaction ends."""
    return connection.execute(select(machines).where(machines.c.id == machine).with_for_update()).one()


def _learned(versions: Sequence[str]) -> str:
    return f"it had been learned by {', '.join(versions) or 'no version'}"


def _erase(connection: Connection, machine: int) -> None:
    """Remove what is left of a machine inside a transaction; codes that it described stay in the catalogue."""
    described = catalogue.c.described_by == machine
    connection.execute(update(catalogue).where(described).values(described_by=None))
    sat = select(holdout_sets.c.id).where(holdout_sets.c.machine_id == machine)
    connection.execute(delete(evaluation_results).where(evaluation_results.c.holdout_set_id.in_(sat)))
    notified = (answers, acknowledgements, notifications, shelved_alarms)
    for table in (
        holdout_sets,
        tasks,
        samples,
        scoring_progress,
        forecasts,
        gaps,
        agents,
        quarantine,
        epochs,
        limit_counts,
        *notified,
    ):
        connection.execute(delete(table).where(table.c.machine_id == machine))
