"""Forecasts as they were served: written once, never changed, and deleted only if they were never due."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import delete, select

from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import forecasts, machines
from service.forecasts.version import StoredForecast
from service.machines.models import Machine
from service.machines.store import absent
from wire.timestamps import from_us, to_us

_COLUMNS = (
    "machine_id",
    "as_of_us",
    "version_id",
    "status",
    "events_seen",
    "coverage",
    "probabilities",
    "other_horizons",
)
_FLOAT32, _FLOAT16 = np.dtype("<f4"), np.dtype("<f2")


@dataclass(frozen=True)
class ForecastStore:
    """What was said, when, by which version."""

    database: Database

    def add(self, made: Sequence[StoredForecast]) -> None:
        """Store forecasts of machines that are still there; one that exists for its moment stays as it is."""
        rows = [
            (
                one.machine,
                to_us(one.as_of),
                one.version,
                one.status,
                one.events_seen,
                one.coverage,
                one.probabilities.astype(_FLOAT32).tobytes(),
                None if one.other_horizons is None else one.other_horizons.astype(_FLOAT16).tobytes(),
            )
            for one in made
        ]
        if rows:
            with self.database.write() as connection:
                gone = absent(connection, {row[0] for row in rows})
                kept = [row for row in rows if row[0] not in gone] if gone else rows
                insert_rows(connection, forecasts, _COLUMNS, kept)

    def made_at(self, at: datetime) -> set[int]:
        """Return which machines have a stored forecast of this very moment."""
        query = select(forecasts.c.machine_id).where(forecasts.c.as_of_us == to_us(at))
        with self.database.read() as connection:
            return set(connection.execute(query).scalars())

    def forget(self, first: datetime, last: datetime) -> None:
        """Delete the forecasts from one moment to another that were made while the clock was ahead."""
        of_somebody = forecasts.c.machine_id.in_(select(machines.c.id))  # so that the key finds them
        made_ahead = forecasts.c.as_of_us.between(to_us(first), to_us(last))
        with self.database.write() as connection:
            connection.execute(delete(forecasts).where(of_somebody, made_ahead))

    def of(self, machine: Machine, start: datetime, end: datetime) -> list[StoredForecast]:
        """Return a machine's stored forecasts made in ``[start, end)``, in time order."""
        query = (
            select(forecasts)
            .where(
                forecasts.c.machine_id == machine.row_id,
                forecasts.c.as_of_us >= to_us(start),
                forecasts.c.as_of_us < to_us(end),
            )
            .order_by(forecasts.c.as_of_us)
        )
        with self.database.read() as connection:
            return [
                StoredForecast(
                    row.machine_id,
                    from_us(row.as_of_us),
                    row.version_id,
                    row.status,
                    row.events_seen,
                    row.coverage,
                    np.frombuffer(row.probabilities, dtype=_FLOAT32),
                )
                for row in connection.execute(query)
            ]

    def any_with_evidence(self, machine: Machine, *, after: datetime) -> bool:
        """Say whether a forecast made after a moment, from at least one event, is stored for a machine."""
        query = select(forecasts.c.as_of_us).where(
            forecasts.c.machine_id == machine.row_id,
            forecasts.c.as_of_us > to_us(after),
            forecasts.c.events_seen > 0,
        )
        with self.database.read() as connection:
            return connection.execute(query.limit(1)).scalar() is not None
