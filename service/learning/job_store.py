"""Store jobs: one open job per machine, claimed by one worker at a time.

A worker renews a lease, measured by the database clock alone. Claiming a job after its lease has expired raises
its ``attempt``, the fencing token: writes of a worker with an older attempt are rejected.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, or_, select, text, update

from service.auth.audit_store import record_request
from service.database.dialect import insert_rows, now_us
from service.database.engine import Database
from service.database.locks import Advisory
from service.database.tables import jobs, machines
from service.errors import LeaseLost, NotFound
from service.http.message import Message, decoded
from service.http.principal import Sites
from service.learning.models import OPEN, Job, Progress
from service.machines.models import Machine
from wire.enums import JobKind, JobState, MachineState
from wire.identity import MachineId
from wire.timestamps import from_us, to_us

_OPEN = jobs.c.state.in_([state.value for state in OPEN])
_RUNNING = select(jobs.c.lease_us).where(jobs.c.state == JobState.RUNNING.value)
_CHOOSE = text("SELECT pg_try_advisory_xact_lock(:key)")
_COLUMNS = ("machine_id", "kind", "state", "created_us", "attempt", "interruptions", "progress")


@dataclass(frozen=True)
class JobStore:
    """All jobs, open and closed."""

    database: Database

    def get(self, number: int) -> Job:
        """Return a job, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(_jobs().where(jobs.c.id == number)).one_or_none()
        if row is None:
            raise NotFound(f"There is no job {number}.")
        return _job(row)

    def several(self, numbers: Iterable[int]) -> list[Job]:
        """Return those of these jobs that exist."""
        with self.database.read() as connection:
            return [_job(row) for row in connection.execute(_jobs().where(jobs.c.id.in_(tuple(numbers))))]

    def newest(self, *, machine: MachineId | None = None, limit: int = 100, sites: Sites = None) -> list[Job]:
        """Return the latest jobs, of all machines, of one, or of some sites', newest first."""
        query = _jobs().order_by(jobs.c.id.desc()).limit(limit)
        if machine is not None:
            query = query.where(machines.c.site == machine.site, machines.c.machine == machine.machine)
        if sites is not None:
            query = query.where(machines.c.site.in_(sites))
        with self.database.read() as connection:
            return [_job(row) for row in connection.execute(query)]

    def collecting(self) -> list[Job]:
        """Return the jobs that wait for enough data, oldest first."""
        query = _jobs().where(jobs.c.state == JobState.COLLECTING.value).order_by(jobs.c.id)
        with self.database.read() as connection:
            return [_job(row) for row in connection.execute(query)]

    def counts(self) -> dict[JobState, int]:
        """Return how many jobs there are in each state, those that have ended included."""
        query = select(jobs.c.state, func.count()).group_by(jobs.c.state)
        with self.database.read() as connection:
            return {JobState(state): number for state, number in connection.execute(query)}

    def open(self, machine: Machine, kind: JobKind, state: JobState, *, at: datetime) -> Job:
        """Return the machine's open job, a new one if it has none."""
        with self.database.write() as connection:
            record_request(connection, action="refresh", subject=str(machine.id))
            return open_job(connection, machine.row_id, kind, state, at=at)

    def queue(self, job: Job) -> None:
        """Put a job that was collecting into the queue."""
        with self.database.write() as connection:
            changed = connection.execute(
                update(jobs)
                .where(jobs.c.id == job.id, jobs.c.state == JobState.COLLECTING.value)
                .values(
                    state=JobState.QUEUED.value, progress=json.dumps(Progress("queued").as_json()), message=None
                )
            )
            if changed.rowcount:
                _set_machine(connection, job, MachineState.LEARNING)

    def set_message(self, job: Job, message: Message, state: MachineState) -> None:
        """Set what a collecting job waits for, and the state of its machine."""
        with self.database.write() as connection:
            still = and_(jobs.c.id == job.id, jobs.c.state == JobState.COLLECTING.value)
            if connection.execute(update(jobs).where(still).values(message=message.encoded())).rowcount:
                _set_machine(connection, job, state)

    def claim(self, owner: str, *, now: datetime, lease: timedelta) -> Job | None:
        """Claim the oldest free job if no other is running; jobs run one after the other.

        Never waits: returns None while another worker is claiming or running a job. ``now`` is only stored.
        """
        with self.database.write() as connection:
            if not _lock_claims(connection):
                return None
            clock_us = now_us(connection)
            running = connection.execute(_RUNNING).all()
            if any(row.lease_us > clock_us for row in running):
                return None
            # The oldest job with an expired lease, or else the oldest queued one, unless its row is locked.
            state = JobState.RUNNING if running else JobState.QUEUED
            expired = or_(jobs.c.lease_us.is_(None), jobs.c.lease_us <= clock_us)
            free = select(jobs.c.id).where(jobs.c.state == state.value, expired).order_by(jobs.c.id).limit(1)
            job_id = connection.execute(free.with_for_update(skip_locked=True)).scalar()
            if job_id is None:
                return None
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id)
                .values(
                    state=JobState.RUNNING.value,
                    owner=owner,
                    lease_us=clock_us + _us(lease),
                    attempt=jobs.c.attempt + 1,
                    interruptions=jobs.c.interruptions + int(bool(running)),
                    started_us=func.coalesce(jobs.c.started_us, to_us(now)),
                    progress=json.dumps(Progress("starting").as_json()),
                    message=None,
                )
            )
            job = _job(connection.execute(_jobs().where(jobs.c.id == job_id)).one())
            _set_machine(connection, job, MachineState.LEARNING)
        return job

    def renew(self, job: Job, progress: Progress, *, lease: timedelta) -> None:
        """Store the progress of a job and renew its lease, or raise :class:`LeaseLost`."""
        with self.database.write() as connection:
            check_lease(connection, job)
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job.id)
                .values(lease_us=now_us(connection) + _us(lease), progress=json.dumps(progress.as_json()))
            )

    def release(self, job: Job, *, why: Message, interrupted: bool = False) -> None:
        """Put a job back into the queue."""
        values = {"state": JobState.QUEUED.value, "owner": None, "lease_us": None, "message": why.encoded()}
        with self.database.write() as connection:
            check_lease(connection, job)
            more = jobs.c.interruptions + int(interrupted)
            connection.execute(update(jobs).where(jobs.c.id == job.id).values(interruptions=more, **values))

    def fail(self, job: Job, message: Message, *, now: datetime, plant_now: datetime) -> None:
        """Close a job as failed and set the reason of its machine."""
        with self.database.write() as connection:
            check_lease(connection, job)
            close_job(connection, job, JobState.FAILED, at=now, plant_at=plant_now, message=message)
            # A machine whose refresh failed stays live.
            state = MachineState.FAILED if job.kind is JobKind.ENROL else MachineState.LIVE
            _set_machine(connection, job, state, reason=message)

    def recover(self) -> int:
        """Put running jobs back into the queue at start; return how many.

        For SQLite only, where one process writes, so no other worker can be running.
        """
        values = {"state": JobState.QUEUED.value, "owner": None, "lease_us": None}
        with self.database.write() as connection:
            running = jobs.c.state == JobState.RUNNING.value
            result = connection.execute(
                update(jobs).where(running).values(interruptions=jobs.c.interruptions + 1, **values)
            )
        return int(result.rowcount)


def _us(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _lock_claims(connection: Connection) -> bool:
    """Return whether this transaction is the only one that claims a job."""
    if connection.dialect.name == "sqlite":  # there every write transaction is exclusive
        return True
    return bool(connection.execute(_CHOOSE, {"key": Advisory.JOBS.value}).scalar_one())


def open_job(connection: Connection, machine: int, kind: JobKind, state: JobState, *, at: datetime) -> Job:
    """Return a machine's open job inside a transaction, a new one if it has none."""
    progress = json.dumps(Progress("waiting").as_json())
    row = (machine, kind.value, state.value, to_us(at), 0, 0, progress)
    insert_rows(connection, jobs, _COLUMNS, [row])
    return _job(connection.execute(_jobs().where(jobs.c.machine_id == machine, _OPEN)).one())


def latest_job(connection: Connection, machine: int) -> Job | None:
    """Return a machine's last job, open or not, inside a transaction."""
    query = _jobs().where(jobs.c.machine_id == machine).order_by(jobs.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return _job(row) if row else None


def check_lease(connection: Connection, job: Job) -> None:
    """Check inside a transaction that the worker still has the job, or raise :class:`LeaseLost`.

    An expired lease is lost only when another worker has claimed the job, which raises its attempt.
    """
    query = select(jobs.c.attempt, jobs.c.owner, jobs.c.state).where(jobs.c.id == job.id)
    row = connection.execute(query.with_for_update()).one_or_none()
    if row is None or tuple(row) != (job.attempt, job.owner, JobState.RUNNING.value):
        raise LeaseLost(f"Job {job.id} is no longer this worker's: it was cancelled, or taken up by another.")


def close_job(
    connection: Connection,
    job: Job,
    state: JobState,
    *,
    at: datetime,
    plant_at: datetime,
    message: Message | None = None,
    version: int | None = None,
) -> None:
    """Close a job inside a transaction."""
    values: dict[str, Any] = {
        "state": state.value,
        "finished_us": to_us(at),
        "finished_plant_us": to_us(plant_at),
        "owner": None,
        "lease_us": None,
        "message": message.encoded() if message else None,
        "version_id": version,
        "progress": json.dumps(Progress("done").as_json()),
    }
    connection.execute(update(jobs).where(jobs.c.id == job.id).values(**values))


def cancel_jobs(connection: Connection, machine: int, *, at: datetime, plant_at: datetime, why: Message) -> None:
    """Cancel a machine's open jobs inside a transaction; their worker loses its lease."""
    values = {
        "state": JobState.CANCELLED.value,
        "finished_us": to_us(at),
        "finished_plant_us": to_us(plant_at),
        "message": why.encoded(),
        "lease_us": None,
        "progress": json.dumps(Progress("done").as_json()),
    }
    connection.execute(update(jobs).where(jobs.c.machine_id == machine, _OPEN).values(**values))


def _set_machine(connection: Connection, job: Job, state: MachineState, *, reason: Message | None = None) -> None:
    # During a refresh the machine stays live.
    if job.kind is JobKind.REFRESH and state is not MachineState.LIVE:
        return
    chosen = and_(machines.c.site == job.machine.site, machines.c.machine == job.machine.machine)
    not_retired = machines.c.state != MachineState.RETIRED.value
    values = {"state": state.value, "reason": reason.encoded() if reason else None}
    connection.execute(update(machines).where(chosen, not_retired).values(**values))


def _jobs() -> Select[Any]:
    return select(jobs, machines.c.site, machines.c.machine).join(machines, machines.c.id == jobs.c.machine_id)


def _job(row: Row[Any]) -> Job:
    return Job(
        id=row.id,
        machine=MachineId(row.site, row.machine),
        kind=JobKind(row.kind),
        state=JobState(row.state),
        created_at=from_us(row.created_us),
        started_at=_moment(row.started_us),
        finished_at=_moment(row.finished_us),
        finished_plant_at=_moment(row.finished_plant_us),
        owner=row.owner,
        attempt=row.attempt,
        interruptions=row.interruptions,
        progress=Progress(**json.loads(row.progress)),
        message=decoded(row.message),
        version=row.version_id,
    )


def _moment(at_us: int | None) -> datetime | None:
    return None if at_us is None else from_us(at_us)
