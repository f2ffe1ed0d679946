"""Store the holdout sets, and the evaluation results of versions on them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select

from forecasting import history
from service.database.engine import Database
from service.database.tables import evaluation_results, holdout_sets, machines, model_versions, promotions
from service.errors import Unavailable
from service.learning.evaluation import EvaluationResult, HoldoutSet
from service.learning.row_codec import RowValues, holdout_from_row, result_from_row
from wire.identity import MachineId

_NEWEST = select(func.max(holdout_sets.c.id)).group_by(holdout_sets.c.machine_id)


@dataclass(frozen=True)
class HoldoutStore:
    """The newest holdout set of every machine, and every version's results."""

    database: Database

    def get(self, machine: MachineId) -> HoldoutSet | None:
        """Return a machine's newest holdout set."""
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
        return holdout_from_row(row)

    def results_by_version(self, machine: MachineId) -> dict[int, EvaluationResult]:
        """Return the results of every version that has ever served on a machine's newest holdout set."""
        query = (
            _results()
            .where(machines.c.site == machine.site, machines.c.machine == machine.machine)
            .where(holdout_sets.c.id.in_(_NEWEST), evaluation_results.c.probabilities.is_not(None))
            .where(evaluation_results.c.version_id.in_(select(promotions.c.version_id)))
        )
        with self.database.read() as connection:
            return {row.version_id: result_from_row(row) for row in connection.execute(query)}

    def matrix(self) -> dict[int, dict[str, dict[str, float | None]]]:
        """Return every version's scores on every machine's holdout sets, newest last: the forgetting matrix."""
        query = _results(with_probabilities=False).order_by(evaluation_results.c.version_id, holdout_sets.c.id)
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
        """Return a version's mean scores over every machine's newest holdout set; empty if it has none."""
        names = ("average_precision", "brier_skill", "macro_f1")
        query = select(*(func.avg(evaluation_results.c[name]) for name in names)).where(
            evaluation_results.c.version_id == version, evaluation_results.c.holdout_set_id.in_(_NEWEST)
        )
        with self.database.read() as connection:
            row = connection.execute(query).one()
        return {name: float(mean) for name, mean in zip(names, row, strict=True) if mean is not None}

    def by_code(self, version: int) -> dict[str, list[dict[str, Any]]]:
        """Return a version's scores by code for each machine."""
        query = (
            _results(with_probabilities=False)
            .where(evaluation_results.c.version_id == version)
            .order_by(holdout_sets.c.id)
        )
        with self.database.read() as connection:
            return {f"{row.site}/{row.machine}": json.loads(row.by_code) for row in connection.execute(query)}


def write_holdout(connection: Connection, holdout: RowValues, *, machine: int, at_us: int) -> int:
    """Insert a machine's new holdout set inside a transaction and return its id."""
    row = {"machine_id": machine, "created_us": at_us, **holdout}
    return int(connection.execute(insert(holdout_sets).values(**row)).inserted_primary_key[0])  # type: ignore[index]


def write_results(connection: Connection, results: Mapping[int, RowValues], *, version: int) -> None:
    """Insert a version's results, by the id of the holdout set, inside a transaction."""
    connection.execute(
        insert(evaluation_results),
        [{"version_id": version, "holdout_set_id": holdout} | row for holdout, row in results.items()],
    )


def newest_holdouts(connection: Connection) -> dict[int, int]:
    """Return the id of every machine's newest holdout set, by the machine's id."""
    query = select(holdout_sets.c.machine_id, func.max(holdout_sets.c.id).label("newest")).group_by(
        holdout_sets.c.machine_id
    )
    return {row.machine_id: row.newest for row in connection.execute(query)}


def _results(*, with_probabilities: bool = True) -> Any:
    columns = [
        column
        for column in evaluation_results.c
        if with_probabilities or column is not evaluation_results.c.probabilities
    ]
    return (
        select(*columns, machines.c.site, machines.c.machine, model_versions.c.targets)
        .join(holdout_sets, holdout_sets.c.id == evaluation_results.c.holdout_set_id)
        .join(machines, machines.c.id == holdout_sets.c.machine_id)
        .join(model_versions, model_versions.c.id == evaluation_results.c.version_id)
    )
