"""Model versions, and which of them served when."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, select

from forecasting.forecaster import Forecaster
from service.core.version import Version
from service.store.engine import Database
from service.store.tables import model_versions, promotions
from service.store.weights import WeightsFolder
from wire.micros import micros, moment

_PROMOTED = (
    select(promotions.c.version_id, func.max(promotions.c.at_us).label("promoted_us"))
    .group_by(promotions.c.version_id)
    .subquery()
)
_VERSION = select(model_versions, _PROMOTED.c.promoted_us).outerjoin(
    _PROMOTED, _PROMOTED.c.version_id == model_versions.c.id
)


@dataclass(frozen=True)
class VersionStore:
    """Versions in the database, their weights in files."""

    database: Database
    weights: WeightsFolder

    def add_and_promote(self, forecaster: Forecaster, *, report: dict[str, Any], at: datetime) -> Version:
        """Store a learned model and let it serve from ``at`` on, in one transaction."""
        name = self.weights.save(forecaster)
        with self.database.write() as connection:
            row = insert(model_versions).values(created_us=micros(at), weights=name, report=json.dumps(report))
            number = connection.execute(row).inserted_primary_key[0]  # type: ignore[index]
            connection.execute(insert(promotions).values(version_id=number, at_us=micros(at)))
        return Version(number, at, name, report, at)

    def champion(self) -> Version | None:
        """Return the version promoted last."""
        return self._promoted_last()

    def serving_at(self, at: datetime) -> Version | None:
        """Return the version that served at a moment, if any did."""
        return self._promoted_last(before_us=micros(at))

    def all(self) -> list[Version]:
        """Return every version, newest first."""
        with self.database.read() as connection:
            return [_version(row) for row in connection.execute(_VERSION.order_by(model_versions.c.id.desc()))]

    def load(self, version: Version) -> Forecaster:
        """Return a version's model, its weights checked against their name."""
        return self.weights.load(version.weights)

    def _promoted_last(self, before_us: int | None = None) -> Version | None:
        query = _VERSION.join(promotions, promotions.c.version_id == model_versions.c.id)
        if before_us is not None:
            query = query.where(promotions.c.at_us <= before_us)
        query = query.order_by(promotions.c.at_us.desc(), promotions.c.id.desc()).limit(1)
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        return _version(row) if row else None


def _version(row: Row[Any]) -> Version:
    promoted = moment(row.promoted_us) if row.promoted_us is not None else None
    return Version(row.id, moment(row.created_us), row.weights, json.loads(row.report), promoted)
