"""Outcomes: forecasts that are due for scoring, what became of them, and everything a scoreboard reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, bindparam, select, text

from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import outcomes, scoring_specs
from service.machines.models import Machine
from service.machines.score_invalidation_store import begin_scoring, was_invalidated
from service.scoring.outcome import Outcome, PendingForecast, ScoredForecast, ScoringSpec
from service.scoring.scores import ScoreTable
from wire.timestamps import to_us

_FLOAT32, _CODES = np.dtype("<f4"), np.dtype("<i8")
_CAME, _PERSISTED, _ANNOUNCED = 1, 2, 4
_MEASURES = ("version_id", "lookback_us", "horizon_us", "codes", "thresholds")
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
_UNMEASURED = text(
    "SELECT DISTINCT version_id FROM promotions WHERE version_id NOT IN (SELECT version_id FROM scoring_specs)"
)
# Forecasts are scored in the order of their moments, so only those of one horizon before the last scored one can
# have been passed over, because another version looked further ahead.
_CLOSED = text(
    "SELECT f.as_of_us, f.version_id, f.probabilities FROM forecasts f"
    " JOIN scoring_specs v ON v.version_id = f.version_id"
    " WHERE f.machine_id = :machine AND f.as_of_us < :closed AND f.as_of_us + v.horizon_us <= :closed"
    " AND f.as_of_us > coalesce((SELECT max(as_of_us) FROM outcomes WHERE machine_id = :machine), :longest)"
    " - :longest AND NOT EXISTS"
    " (SELECT 1 FROM outcomes o WHERE o.machine_id = f.machine_id AND o.as_of_us = f.as_of_us)"
    " ORDER BY f.as_of_us LIMIT :limit"
)
# The inner query is answered by its index alone; in one piece, SQLite would read every outcome of the machine.
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
_MADE = text(
    "SELECT count(*) FROM forecasts f JOIN scoring_specs v ON v.version_id = f.version_id"
    " WHERE f.machine_id IN :machines AND f.as_of_us >= :since AND f.as_of_us < :until"
    " AND f.as_of_us + v.horizon_us <= :closed"
).bindparams(bindparam("machines", expanding=True))
_KNOWN = text(
    "SELECT count(*) FROM outcomes WHERE machine_id IN :machines AND as_of_us >= :since AND as_of_us < :until"
).bindparams(bindparam("machines", expanding=True))


@dataclass(frozen=True)
class OutcomeStore:
    """How forecasts turned out, beside forecasts that never change."""

    database: Database

    def versions_without_spec(self) -> list[int]:
        """Return the versions that have served and whose measure is not kept yet."""
        with self.database.read() as connection:
            return sorted(connection.execute(_UNMEASURED).scalars())

    def save_spec(self, measure: ScoringSpec) -> None:
        """Keep what scoring needs of a version; the first to be kept stays."""
        codes, thresholds = measure.codes.astype(_CODES), measure.thresholds.astype(_FLOAT32)
        row = (measure.version, measure.lookback_us, measure.horizon_us, codes.tobytes(), thresholds.tobytes())
        with self.database.write() as connection:
            insert_rows(connection, scoring_specs, _MEASURES, [row])

    def specs(self) -> dict[int, ScoringSpec]:
        """Return what is kept of every version."""
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
        """Say that horizons up to a moment are about to be scored; return what ``add`` wants to know."""
        with self.database.write() as connection:
            return begin_scoring(connection, machine.row_id, through_us)

    def add(self, machine: Machine, made: Sequence[Outcome], *, opened: int, at: datetime) -> None:
        """Store outcomes; if events came too late to be in them, they stay due."""
        with self.database.write() as connection:
            stale = int(was_invalidated(connection, machine.row_id, opened))
            rows = [
                (
                    machine.row_id,
                    one.as_of_us,
                    one.horizon_end_us,
                    one.events_occurred,
                    one.unobserved,
                    _marks(one),
                    one.base_rate.astype(_FLOAT32).tobytes(),
                    to_us(at),
                    one.revision_count,
                    stale,
                )
                for one in made
            ]
            insert_rows(connection, outcomes, _COLUMNS, rows, on_conflict=_REPLACE)

    def score_tables(
        self, machine: Machine, start: datetime, end: datetime, *, status: str | None = None
    ) -> list[ScoreTable]:
        """Return the outcomes of a machine's forecasts made in ``[start, end)``, one sheet for each version."""
        values = {"machine": machine.row_id, "since": to_us(start), "until": to_us(end)}
        sql = _SPAN if status is None else _SPAN + " AND f.status = :status"
        measures = self.specs()
        with self.database.read() as connection:
            rows = connection.execute(text(sql), values if status is None else values | {"status": status})
            by_version = groupby(sorted(map(tuple, rows), key=itemgetter(0, 1)), key=itemgetter(0))
            return [_sheet(measures[version], list(group)) for version, group in by_version]

    def page(self, machine: Machine, start: datetime, end: datetime, *, limit: int) -> list[ScoredForecast]:
        """Return the last scored forecasts that were made in ``[start, end)``, newest first."""
        values = {"machine": machine.row_id, "since": to_us(start), "until": to_us(end), "limit": limit}
        measures = self.specs()
        with self.database.read() as connection:
            return [_scored(row, measures[row.version_id]) for row in connection.execute(_PAGE, values)]

    def pending(self, machines: Sequence[Machine], start: datetime, end: datetime, *, closed: datetime) -> int:
        """Return how many forecasts of ``[start, end)`` whose horizon ended by ``closed`` have no outcome."""
        values = {"machines": [machine.row_id for machine in machines], "since": to_us(start), "until": to_us(end)}
        with self.database.read() as connection:
            known = connection.execute(_KNOWN, values).scalar_one()
            made = connection.execute(_MADE, values | {"closed": to_us(closed)}).scalar_one()
        return max(int(made) - int(known), 0)


def _marks(outcome: Outcome) -> bytes:
    marks = outcome.occurred * _CAME + outcome.persisted * _PERSISTED + outcome.predicted * _ANNOUNCED
    return bytes(marks.astype(np.uint8))


def _floats(stored: bytes) -> NDArray[np.float32]:
    return np.frombuffer(stored, dtype=_FLOAT32)


def _sheet(measure: ScoringSpec, rows: list[tuple[Any, ...]]) -> ScoreTable:
    """Put rows that are in time order side by side; arrays are joined as bytes, never looked at one by one."""
    versions, at, status, unheard, revised, stored_marks, stored_rates, stored_said = zip(*rows, strict=True)
    shape = (len(rows), len(measure.codes))
    marks = np.frombuffer(b"".join(stored_marks), dtype=np.uint8).reshape(shape)
    rates = _floats(b"".join(stored_rates)).reshape(shape)
    return ScoreTable(
        codes=measure.codes,
        version=np.array(versions, dtype=np.int64),
        at=np.array(at, dtype=np.int64),
        revised=np.array(revised, dtype=np.int64),
        status=np.array(status, dtype=np.str_),
        heard=~np.array(unheard, dtype=np.bool_),
        asked=np.ones(shape, dtype=np.bool_),
        probability=_floats(b"".join(stored_said)).reshape(shape),
        base_rate=rates,
        announced=marks & _ANNOUNCED != 0,
        came=marks & _CAME != 0,
        persisted=marks & _PERSISTED != 0,
        usual=rates >= measure.thresholds,
    )


def _scored(row: Row[Any], measure: ScoringSpec) -> ScoredForecast:
    marks = np.frombuffer(row.label_flags, dtype=np.uint8)
    outcome = Outcome(
        row.as_of_us,
        row.horizon_end_us,
        row.events_occurred,
        bool(row.unobserved),
        marks & _CAME != 0,
        marks & _PERSISTED != 0,
        marks & _ANNOUNCED != 0,
        _floats(row.base_rates),
        row.revision_count,
    )
    return ScoredForecast(outcome, measure, row.status, _floats(row.probabilities), row.scored_us)
