"""The one transaction that ends a learning: version, memory, exams, marks, champion and job, or nothing."""

import json
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from service.auth.audit_store import record
from service.database.engine import Database
from service.database.tables import machines, model_versions
from service.database.weight_files import WeightsFolder
from service.errors import ChampionChanged
from service.forecasts.shared_weight_store import keep
from service.forecasts.version_store import champion_number, promote
from service.http.message import Message
from service.learning.candidate_store import CandidateRows
from service.learning.evaluation_store import newest_holdouts, write_holdout, write_results
from service.learning.job import Job
from service.learning.job_store import check_lease, close_job
from service.learning.memory_store import write_memory
from wire.enums import JobState, MachineState
from wire.identity import MachineId
from wire.timestamps import to_us


@dataclass(frozen=True)
class UpdateStore:
    """Where a candidate becomes a version."""

    database: Database
    weights: WeightsFolder

    def commit(self, job: Job, parcel: CandidateRows, *, now: datetime, plant_now: datetime) -> int:
        """Write all that a learning has brought and return the version's number.

        Raises :class:`LeaseLost` if the job is no longer this worker's, and :class:`ChampionChanged` if the
        model it started from no longer serves; then nothing is written.
        """
        with self.database.write() as connection:
            check_lease(connection, job)
            if champion_number(connection) != parcel.parent:
                raise ChampionChanged("Another version was promoted while this one was learned; it learns again.")
            rows = {str(MachineId(site, name)): row for row, site, name in connection.execute(_MACHINES)}
            gone = [machine for machine in parcel.kept if machine not in rows]
            if gone:
                raise ChampionChanged("A machine was retired while this was learned with it; it learns again.")
            version = _write_version(connection, parcel, at=plant_now)
            keep(connection, self.weights, parcel.weights)
            write_memory(connection, parcel, version=version, rows=rows)
            _write_exams(connection, parcel, version=version, rows=rows, at=plant_now)
            if parcel.passed:
                reason = f"learned {parcel.machine}"
                promote(connection, version, at=plant_now, reason=reason)
                record(
                    connection, at=plant_now, who="gate", action="promote", subject=f"v{version}", reason=reason
                )
            state = JobState.PROMOTED if parcel.passed else JobState.REJECTED
            sentences = (*parcel.reasons, *parcel.notes, *parcel.undecided)
            message = Message(sentences) if sentences else None
            close_job(connection, job, state, at=now, plant_at=plant_now, message=message, version=version)
            _settle_machine(connection, parcel, rows[parcel.machine], at=plant_now)
        return version


_MACHINES = select(machines.c.id, machines.c.site, machines.c.machine).where(
    machines.c.state != MachineState.RETIRED.value
)


def _write_version(connection: Connection, parcel: CandidateRows, *, at: datetime) -> int:
    row = {
        "created_us": to_us(at),
        "weights": parcel.weights,
        "report": json.dumps(parcel.report),
        "parent_id": parcel.parent,
        "targets": json.dumps(parcel.targets),
    }
    return int(connection.execute(insert(model_versions).values(**row)).inserted_primary_key[0])  # type: ignore[index]


def _write_exams(
    connection: Connection, parcel: CandidateRows, *, version: int, rows: dict[str, int], at: datetime
) -> None:
    newest = newest_holdouts(connection)
    fresh = write_holdout(connection, parcel.exam, machine=rows[parcel.machine], at_us=to_us(at))
    numbers = {machine: newest[rows[machine]] for machine in parcel.marks if machine != parcel.machine}
    numbers[parcel.machine] = fresh
    write_results(connection, {numbers[machine]: one for machine, one in parcel.marks.items()}, version=version)
    if parcel.parent is not None and parcel.before is not None:
        write_results(connection, {fresh: parcel.before}, version=parcel.parent)


def _settle_machine(connection: Connection, parcel: CandidateRows, machine: int, *, at: datetime) -> None:
    """Say how the machine is now: live on the new version, or on the champion, or on nothing at all."""
    served = parcel.passed or parcel.parent is not None
    values: dict[str, object] = {
        "state": (MachineState.LIVE if served else MachineState.FAILED).value,
        "reason": None if parcel.passed else Message(parcel.reasons).encoded(),
    }
    if parcel.passed:
        values["learned_us"] = to_us(at)
    connection.execute(update(machines).where(machines.c.id == machine).values(**values))
