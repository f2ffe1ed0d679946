"""SQL of scoring: pending forecasts, outcomes, score tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, TextClause, bindparam, select, text

from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import outcomes, scoring_specs
from service.machines.models import Machine
from service.machines.score_invalidation_store import begin_scoring, was_invalidated
from service.scoring.models import (
    QUARTERS,
    History,
    Outcome,
    PendingForecast,
    ScoredForecast,
    ScoringSpec,
    predicted_positive,
)
from service.scoring.scores import ScoreTable
from wire.enums import Horizon
from wire.timestamps import to_us

_FLOAT32, _FLOAT16, _CODES = np.dtype("<f4"), np.dtype("<f2"), np.dtype("<i8")
_OCCURRED, _PERSISTED, _PREDICTED = 1, 2, 4
_SPEC_COLUMNS = ("version_id", "lookback_us", "horizon_us", "codes", "thresholds")
_COLUMNS = (
    "machine_id",
    "as_of_us",
    "horizon_end_us",
    "events_occurred",
    "unobserved",
    "label_flags",
    "base_rates",
    "scored_us",
    "revision_count",
    "stale",
)
_REPLACE = "(machine_id, as_of_us) DO UPDATE SET " + ", ".join(f"{c} = excluded.{c}" for c in _COLUMNS[3:])
_WITHOUT_SPEC = text(
    "SELECT DISTINCT version_id FROM promotions WHERE version_id NOT IN (SELECT version_id FROM scoring_specs)"
)
# Forecasts are scored in time order. Only those within one horizon before the last scored one can be missing,
# because another version had a longer horizon.
_CLOSED = text(
    "SELECT f.as_of_us, f.version_id, f.probabilities FROM forecasts f"
    " JOIN scoring_specs v ON v.version_id = f.version_id"
    " WHERE f.machine_id = :machine AND f.as_of_us < :closed AND f.as_of_us + v.horizon_us <= :closed"
    " AND f.as_of_us > coalesce((SELECT max(as_of_us) FROM outcomes WHERE machine_id = :machine), :longest)"
    " - :longest AND NOT EXISTS"
    " (SELECT 1 FROM outcomes o WHERE o.machine_id = f.machine_id AND o.as_of_us = f.as_of_us)"
    " ORDER BY f.as_of_us LIMIT :limit"
)
# The inner query uses only the index; without it SQLite would read every outcome of the machine.
_STALE = text(
    "SELECT o.as_of_us, f.version_id, f.probabilities, o.events_occurred, o.unobserved, o.revision_count FROM"
    " (SELECT as_of_us FROM outcomes WHERE machine_id = :machine AND stale = 1 ORDER BY as_of_us LIMIT :limit) s"
    " JOIN outcomes o ON o.machine_id = :machine AND o.as_of_us = s.as_of_us"
    " JOIN forecasts f ON f.machine_id = :machine AND f.as_of_us = s.as_of_us"
)
_SPAN = (
    "SELECT f.version_id, o.as_of_us, f.status, o.unobserved, o.revision_count, o.label_flags, o.base_rates,"
    " f.probabilities FROM outcomes o JOIN forecasts f ON f.machine_id = o.machine_id AND f.as_of_us = o.as_of_us"
    " WHERE o.machine_id = :machine AND o.as_of_us >= :since AND o.as_of_us < :until"
)
_PAGE = text(
    "SELECT o.*, f.version_id, f.status, f.probabilities FROM outcomes o"
    " JOIN forecasts f ON f.machine_id = o.machine_id AND f.as_of_us = o.as_of_us"
    " WHERE o.machine_id = :machine AND o.as_of_us >= :since AND o.as_of_us < :until"
    " ORDER BY o.as_of_us DESC LIMIT :limit"
)
_HAS_OTHERS, _HAS_STATUS = " AND f.other_horizons IS NOT NULL", " AND f.status = :status"
# A horizon is given in quarters of the main one.
_ENDED = (
    "SELECT count(*) FROM forecasts f JOIN scoring_specs v ON v.version_id = f.version_id"
    " WHERE f.machine_id IN :machines AND f.as_of_us >= :since AND f.as_of_us < :until"
    " AND f.as_of_us + v.horizon_us * :quarters / 4 <= :closed"
)
_ISSUED = (
    "SELECT f.version_id, f.as_of_us, f.status, f.other_horizons FROM forecasts f"
    " JOIN scoring_specs v ON v.version_id = f.version_id"
    " WHERE f.machine_id = :machine AND f.as_of_us >= :since AND f.as_of_us < :until"
    " AND f.as_of_us + v.horizon_us * :quarters / 4 <= :closed AND f.other_horizons IS NOT NULL"
)


@dataclass(frozen=True, eq=False)
class IssuedForecasts:
    """A machine's forecasts of one version for the near or the far horizon, in time order."""

    spec: ScoringSpec
    at: NDArray[np.int64]
    status: NDArray[np.str_]
    probabilities: NDArray[np.float32]

    def score_table(self, history: History) -> ScoreTable:
        """Compare them with what happened."""
        labels = history.labels(self.at, self.spec)
        count = len(self.at)
        return ScoreTable(
            codes=self.spec.codes,
            version=np.full(count, self.spec.version, dtype=np.int64),
            at=self.at,
            horizon=np.full(count, self.spec.horizon_us, dtype=np.int64),
            revision_count=np.zeros(count, dtype=np.int64),
            status=self.status,
            observed=~labels.unobserved,
            is_target=np.ones(labels.occurred.shape, dtype=np.bool_),
            probability=self.probabilities,
            base_rate=labels.base_rate,
            predicted=predicted_positive(self.probabilities, self.spec.thresholds),
            occurred=labels.occurred,
            persisted=labels.persisted,
            base_rate_predicted=labels.base_rate >= self.spec.thresholds,
        )


@dataclass(frozen=True)
class OutcomeStore:
    """Outcomes of forecasts and scoring parameters of versions."""

    database: Database

    def versions_without_spec(self) -> list[int]:
        """Return the versions that were promoted and have no scoring parameters yet."""
        with self.database.read() as connection:
            return sorted(connection.execute(_WITHOUT_SPEC).scalars())

    def save_spec(self, spec: ScoringSpec) -> None:
        """Store the scoring parameters of a version, unless it has some."""
        codes, thresholds = spec.codes.astype(_CODES), spec.thresholds.astype(_FLOAT32)
        row = (spec.version, spec.lookback_us, spec.horizon_us, codes.tobytes(), thresholds.tobytes())
        with self.database.write() as connection:
            insert_rows(connection, scoring_specs, _SPEC_COLUMNS, [row])

    def specs(self) -> dict[int, ScoringSpec]:
        """Return the scoring parameters by version."""
        with self.database.read() as connection:
            return {
                row.version_id: ScoringSpec(
                    row.version_id,
                    row.lookback_us,
                    row.horizon_us,
                    np.frombuffer(row.codes, dtype=_CODES).astype(np.int64),
                    np.frombuffer(row.thresholds, dtype=_FLOAT32),
                )
                for row in connection.execute(select(scoring_specs))
            }

    def due(self, machine: Machine, *, closed: datetime, longest_us: int, limit: int) -> list[PendingForecast]:
        """Return forecasts whose horizon ended by ``closed`` and that have no outcome, or a stale one.

        ``longest_us`` is the longest horizon of any version.
        """
        values = {"machine": machine.row_id, "closed": to_us(closed), "longest": longest_us, "limit": limit}
        with self.database.read() as connection:
            rows = connection.execute(_CLOSED, values).fetchall()
            due = [PendingForecast(row.as_of_us, row.version_id, _floats(row.probabilities)) for row in rows]
            again = connection.execute(_STALE, {"machine": machine.row_id, "limit": limit - len(due)})
            return due + [
                PendingForecast(
                    row.as_of_us,
                    row.version_id,
                    _floats(row.probabilities),
                    row.events_occurred,
                    bool(row.unobserved),
                    row.revision_count,
                )
                for row in again
            ]

    def begin(self, machine: Machine, through_us: int) -> int:
        """Start scoring horizons up to a moment; return the token that ``add`` needs."""
        with self.database.write() as connection:
            return begin_scoring(connection, machine.row_id, through_us)

    def add(self, machine: Machine, scored: Sequence[Outcome], *, opened: int, at: datetime) -> None:
        """Store outcomes; they stay due if events arrived during the scoring."""
        with self.database.write() as connection:
            stale = int(was_invalidated(connection, machine.row_id, opened))
            rows = [
                (
                    machine.row_id,
                    outcome.as_of_us,
                    outcome.horizon_end_us,
                    outcome.event_count,
                    outcome.unobserved,
                    _marks(outcome),
                    outcome.base_rate.astype(_FLOAT32).tobytes(),
                    to_us(at),
                    outcome.revision_count,
                    stale,
                )
                for outcome in scored
            ]
            insert_rows(connection, outcomes, _COLUMNS, rows, on_conflict=_REPLACE)

    def score_tables(
        self, machine: Machine, start: datetime, end: datetime, *, status: str | None = None
    ) -> list[ScoreTable]:
        """Return the outcomes of a machine's forecasts made in ``[start, end)``, one table per version."""
        values = {"machine": machine.row_id, "since": to_us(start), "until": to_us(end)}
        specs = self.specs()
        with self.database.read() as connection:
            rows = connection.execute(*_with_status(_SPAN, values, status))
            by_version = groupby(sorted(map(tuple, rows), key=itemgetter(0, 1)), key=itemgetter(0))
            return [_score_table(specs[version], list(group)) for version, group in by_version]

    def page(self, machine: Machine, start: datetime, end: datetime, *, limit: int) -> list[ScoredForecast]:
        """Return the last scored forecasts that were made in ``[start, end)``, newest first."""
        values = {"machine": machine.row_id, "since": to_us(start), "until": to_us(end), "limit": limit}
        specs = self.specs()
        with self.database.read() as connection:
            return [_scored(row, specs[row.version_id]) for row in connection.execute(_PAGE, values)]

    def issued(
        self,
        machine: Machine,
        start: datetime,
        end: datetime,
        horizon: Horizon,
        *,
        closed: datetime,
        status: str | None = None,
    ) -> list[IssuedForecasts]:
        """Return the forecasts of the near or far horizon made in ``[start, end)`` and ended by ``closed``."""
        values = {"machine": machine.row_id, **_span(start, end, horizon, closed)}
        specs = self.specs()
        with self.database.read() as connection:
            rows = connection.execute(*_with_status(_ISSUED, values, status))
            ordered = sorted(map(tuple, rows), key=itemgetter(0, 1))
        return [
            _issued(specs[version].for_horizon(horizon), horizon, list(group))
            for version, group in groupby(ordered, key=itemgetter(0))
        ]

    def ended(
        self,
        machines: Sequence[Machine],
        start: datetime,
        end: datetime,
        horizon: Horizon,
        *,
        closed: datetime,
        status: str | None = None,
    ) -> int:
        """Return how many forecasts made in ``[start, end)`` have a horizon that ended by ``closed``."""
        sql = _ENDED if horizon is Horizon.MAIN else _ENDED + _HAS_OTHERS
        values = {"machines": [machine.row_id for machine in machines], **_span(start, end, horizon, closed)}
        query, values = _with_status(sql, values, status)
        with self.database.read() as connection:
            query = query.bindparams(bindparam("machines", expanding=True))
            return int(connection.execute(query, values).scalar_one())


def _span(start: datetime, end: datetime, horizon: Horizon, closed: datetime) -> dict[str, int]:
    return {
        "since": to_us(start),
        "until": to_us(end),
        "quarters": QUARTERS[horizon],
        "closed": to_us(closed),
    }


def _with_status(sql: str, values: dict[str, Any], status: str | None) -> tuple[TextClause, dict[str, Any]]:
    return (text(sql), values) if status is None else (text(sql + _HAS_STATUS), values | {"status": status})


def _issued(spec: ScoringSpec, horizon: Horizon, rows: list[tuple[Any, ...]]) -> IssuedForecasts:
    _, at, status, stored = zip(*rows, strict=True)
    both = np.frombuffer(b"".join(stored), dtype=_FLOAT16).reshape(len(rows), 2, len(spec.codes))
    chosen = both[:, 0 if horizon is Horizon.NEAR else 1].astype(np.float32)
    return IssuedForecasts(spec, np.array(at, dtype=np.int64), np.array(status, dtype=np.str_), chosen)


def _marks(outcome: Outcome) -> bytes:
    marks = outcome.occurred * _OCCURRED + outcome.persisted * _PERSISTED + outcome.predicted * _PREDICTED
    return bytes(marks.astype(np.uint8))


def _floats(stored: bytes) -> NDArray[np.float32]:
    return np.frombuffer(stored, dtype=_FLOAT32)


def _score_table(spec: ScoringSpec, rows: list[tuple[Any, ...]]) -> ScoreTable:
    """Return rows in time order as one table; arrays are joined as bytes for speed."""
    versions, at, status, unobserved, revisions, row_marks, row_rates, row_probabilities = zip(*rows, strict=True)
    shape = (len(rows), len(spec.codes))
    marks = np.frombuffer(b"".join(row_marks), dtype=np.uint8).reshape(shape)
    rates = _floats(b"".join(row_rates)).reshape(shape)
    return ScoreTable(
        codes=spec.codes,
        version=np.array(versions, dtype=np.int64),
        at=np.array(at, dtype=np.int64),
        horizon=np.full(len(rows), spec.horizon_us, dtype=np.int64),
        revision_count=np.array(revisions, dtype=np.int64),
        status=np.array(status, dtype=np.str_),
        observed=~np.array(unobserved, dtype=np.bool_),
        is_target=np.ones(shape, dtype=np.bool_),
        probability=_floats(b"".join(row_probabilities)).reshape(shape),
        base_rate=rates,
        predicted=marks & _PREDICTED != 0,
        occurred=marks & _OCCURRED != 0,
        persisted=marks & _PERSISTED != 0,
        base_rate_predicted=rates >= spec.thresholds,
    )


def _scored(row: Row[Any], spec: ScoringSpec) -> ScoredForecast:
    marks = np.frombuffer(row.label_flags, dtype=np.uint8)
    outcome = Outcome(
        row.as_of_us,
        row.horizon_end_us,
        row.events_occurred,
        bool(row.unobserved),
        marks & _OCCURRED != 0,
        marks & _PERSISTED != 0,
        marks & _PREDICTED != 0,
        _floats(row.base_rates),
        row.revision_count,
    )
    return ScoredForecast(outcome, spec, row.status, _floats(row.probabilities), row.scored_us)
