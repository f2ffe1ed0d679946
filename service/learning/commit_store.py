"""Commit a candidate in one transaction: version, memory, evaluation, champion and job, or nothing."""

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
from service.learning.candidate import Candidate
from service.learning.evaluation_store import newest_holdouts, write_holdout, write_results
from service.learning.job_store import check_lease, close_job
from service.learning.memory_store import write_memory
from service.learning.models import Job
from wire.enums import JobState, MachineState
from wire.identity import MachineId
from wire.timestamps import to_us


@dataclass(frozen=True)
class UpdateStore:
    """Commits candidates as versions."""

    database: Database
    weights: WeightsFolder

    def commit(self, job: Job, candidate: Candidate, *, now: datetime, plant_now: datetime) -> int:
        """Commit a candidate and return the version's id.

        Raises :class:`LeaseLost` if this worker no longer has the job, and :class:`ChampionChanged` if the
        candidate's parent no longer serves; then nothing is written.
        """
        with self.database.write() as connection:
            check_lease(connection, job)
            if champion_number(connection) != candidate.parent:
                raise ChampionChanged("Another version was promoted while this one was learned; it learns again.")
            rows = {str(MachineId(site, name)): row for row, site, name in connection.execute(_MACHINES)}
            if any(machine not in rows for machine in candidate.retained):
                raise ChampionChanged("A machine was retired while this was learned with it; it learns again.")
            version = _write_version(connection, candidate, at=plant_now)
            keep(connection, self.weights, candidate.weights)
            write_memory(connection, candidate, version=version, rows=rows)
            _write_evaluation(connection, candidate, version=version, rows=rows, at=plant_now)
            if candidate.passed:
                reason = f"learned {candidate.machine}"
                promote(connection, version, at=plant_now, reason=reason)
                record(
                    connection, at=plant_now, who="gate", action="promote", subject=f"v{version}", reason=reason
                )
            state = JobState.PROMOTED if candidate.passed else JobState.REJECTED
            sentences = (*candidate.reasons, *candidate.notes, *candidate.undecided)
            message = Message(sentences) if sentences else None
            close_job(connection, job, state, at=now, plant_at=plant_now, message=message, version=version)
            _set_machine_state(connection, candidate, rows[candidate.machine], at=plant_now)
        return version


_MACHINES = select(machines.c.id, machines.c.site, machines.c.machine).where(
    machines.c.state != MachineState.RETIRED.value
)


def _write_version(connection: Connection, candidate: Candidate, *, at: datetime) -> int:
    row = {
        "created_us": to_us(at),
        "weights": candidate.weights,
        "report": json.dumps(candidate.report),
        "parent_id": candidate.parent,
        "targets": json.dumps(candidate.targets),
    }
    return int(connection.execute(insert(model_versions).values(**row)).inserted_primary_key[0])  # type: ignore[index]


def _write_evaluation(
    connection: Connection, candidate: Candidate, *, version: int, rows: dict[str, int], at: datetime
) -> None:
    newest = newest_holdouts(connection)
    new = write_holdout(connection, candidate.holdout, machine=rows[candidate.machine], at_us=to_us(at))
    holdouts = {machine: newest[rows[machine]] for machine in candidate.results if machine != candidate.machine}
    holdouts[candidate.machine] = new
    results = {holdouts[machine]: row for machine, row in candidate.results.items()}
    write_results(connection, results, version=version)
    if candidate.parent is not None and candidate.before is not None:
        write_results(connection, {new: candidate.before}, version=candidate.parent)


def _set_machine_state(connection: Connection, candidate: Candidate, machine: int, *, at: datetime) -> None:
    """Set the state of the machine: live on the new version or on the champion, or failed."""
    served = candidate.passed or candidate.parent is not None
    values: dict[str, object] = {
        "state": (MachineState.LIVE if served else MachineState.FAILED).value,
        "reason": None if candidate.passed else Message(candidate.reasons).encoded(),
    }
    if candidate.passed:
        values["learned_us"] = to_us(at)
    connection.execute(update(machines).where(machines.c.id == machine).values(**values))
