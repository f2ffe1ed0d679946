"""Exams and the marks that versions got in them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, func, insert, select

from forecasting import history
from service.database.engine import Database
from service.database.tables import evaluation_results, holdout_sets, machines, model_versions, promotions
from service.errors import Unavailable
from service.learning.array_codec import decompress, windows_from_bytes
from service.learning.candidate_store import RowValues
from service.learning.evaluation import EvaluationResult, HoldoutSet
from wire.identity import MachineId

_NEWEST = select(func.max(holdout_sets.c.id)).group_by(holdout_sets.c.machine_id)


@dataclass(frozen=True)
class HoldoutStore:
    """The newest exam of every machine, and who passed how."""

    database: Database

    def get(self, machine: MachineId) -> HoldoutSet | None:
        """Return a machine's newest exam."""
        query = (
            select(holdout_sets)
            .join(machines, machines.c.id == holdout_sets.c.machine_id)
            .where(machines.c.site == machine.site, machines.c.machine == machine.machine)
            .order_by(holdout_sets.c.id.desc())
            .limit(1)
        )
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        if row.features != history.VERSION:
            raise Unavailable(f"The exam of {machine} was written by another version of Alarmcast; learn it anew.")
        rates = {int(code): rate for code, rate in json.loads(row.base_rate).items()}
        return HoldoutSet(windows_from_bytes(row.windows), rates)

    def results_by_version(self, machine: MachineId) -> dict[int, EvaluationResult]:
        """Return what every version that has ever served said in a machine's newest exam, by its number."""
        query = (
            _marks()
            .where(machines.c.site == machine.site, machines.c.machine == machine.machine)
            .where(holdout_sets.c.id.in_(_NEWEST), evaluation_results.c.probabilities.is_not(None))
            .where(evaluation_results.c.version_id.in_(select(promotions.c.version_id)))
        )
        with self.database.read() as connection:
            return {row.version_id: _answered(row) for row in connection.execute(query)}

    def matrix(self) -> dict[int, dict[str, dict[str, float | None]]]:
        """Return every version's figures in every machine's exams, newest exam last: the forgetting matrix."""
        query = _marks(figures_only=True).order_by(evaluation_results.c.version_id, holdout_sets.c.id)
        table: dict[int, dict[str, dict[str, float | None]]] = {}
        with self.database.read() as connection:
            for row in connection.execute(query):
                table.setdefault(row.version_id, {})[f"{row.site}/{row.machine}"] = {
                    "exam": row.holdout_set_id,
                    "average_precision": row.average_precision,
                    "brier_skill": row.brier_skill,
                    "macro_f1": row.macro_f1,
                }
        return table

    def means(self, version: int) -> dict[str, float]:
        """Return a version's figures as means over every machine's newest exam; empty if it sat none of them."""
        names = ("average_precision", "brier_skill", "macro_f1")
        query = select(*(func.avg(evaluation_results.c[name]) for name in names)).where(
            evaluation_results.c.version_id == version, evaluation_results.c.holdout_set_id.in_(_NEWEST)
        )
        with self.database.read() as connection:
            found = connection.execute(query).one()
        return {name: float(mean) for name, mean in zip(names, found, strict=True) if mean is not None}

    def by_code(self, version: int) -> dict[str, list[dict[str, Any]]]:
        """Return a version's figures for each code in each machine's exam."""
        query = (
            _marks(figures_only=True).where(evaluation_results.c.version_id == version).order_by(holdout_sets.c.id)
        )
        with self.database.read() as connection:
            return {f"{row.site}/{row.machine}": json.loads(row.by_code) for row in connection.execute(query)}


def write_holdout(connection: Connection, exam: RowValues, *, machine: int, at_us: int) -> int:
    """Write a machine's new exam inside a transaction and return its number."""
    row = {"machine_id": machine, "created_us": at_us, **exam}
    return int(connection.execute(insert(holdout_sets).values(**row)).inserted_primary_key[0])  # type: ignore[index]


def write_results(connection: Connection, given: Mapping[int, RowValues], *, version: int) -> None:
    """Write what a version got in exams, by their numbers, inside a transaction."""
    connection.execute(
        insert(evaluation_results),
        [{"version_id": version, "holdout_set_id": exam} | one for exam, one in given.items()],
    )


def newest_holdouts(connection: Connection) -> dict[int, int]:
    """Return the number of every machine's newest exam, by the machine's short number."""
    query = select(holdout_sets.c.machine_id, func.max(holdout_sets.c.id).label("newest")).group_by(
        holdout_sets.c.machine_id
    )
    return {row.machine_id: row.newest for row in connection.execute(query)}


def _marks(*, figures_only: bool = False) -> Any:
    columns = [
        column
        for column in evaluation_results.c
        if not figures_only or column is not evaluation_results.c.probabilities
    ]
    return (
        select(*columns, machines.c.site, machines.c.machine, model_versions.c.targets)
        .join(holdout_sets, holdout_sets.c.id == evaluation_results.c.holdout_set_id)
        .join(machines, machines.c.id == holdout_sets.c.machine_id)
        .join(model_versions, model_versions.c.id == evaluation_results.c.version_id)
    )


def _answered(row: Row[Any]) -> EvaluationResult:
    targets = tuple(json.loads(row.targets))
    return EvaluationResult(
        targets=targets,
        probabilities=np.asarray(decompress(row.probabilities)).reshape(-1, len(targets)),
        average_precision=row.average_precision,
        brier_skill=row.brier_skill,
        macro_f1=row.macro_f1,
        by_code=json.loads(row.by_code),
    )
