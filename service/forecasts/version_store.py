"""Model versions, which of them served when, and whose weights may go."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update

from forecasting.forecaster import Forecaster
from service.auth.audit_store import record
from service.database.dialect import write_alone
from service.database.engine import Database
from service.database.tables import (
    evaluation_results,
    forecasts,
    machines,
    model_versions,
    promotions,
    samples,
    tasks,
)
from service.database.weight_files import WeightsFolder
from service.errors import Conflict, NotFound
from service.forecasts.shared_weight_store import SharedWeights, forget, keep
from service.forecasts.version import Version, champion_changed_error
from service.messaging.bus import ChampionPromoted
from service.messaging.cluster_store import notify
from wire.enums import MachineState
from wire.timestamps import from_us, to_us

_STRAY_SECONDS = 24 * 3600.0  # a learning leaves its weights before it is committed, but not for so long
_PROMOTED = (
    select(promotions.c.version_id, func.max(promotions.c.at_us).label("promoted_us"))
    .group_by(promotions.c.version_id)
    .subquery()
)
# By number, not by time: a plant clock that was set back must not bring an old version back with it.
_NEWEST_PROMOTION = promotions.c.id.desc()
_CHAMPION_NUMBER = select(promotions.c.version_id).order_by(_NEWEST_PROMOTION).limit(1)
_VERSION = select(model_versions, _PROMOTED.c.promoted_us).outerjoin(
    _PROMOTED, _PROMOTED.c.version_id == model_versions.c.id
)
_NEWEST_FIRST = model_versions.c.id.desc()
_LINEAGE = select(
    model_versions.c.id, model_versions.c.parent_id, model_versions.c.weights, model_versions.c.pruned
).order_by(_NEWEST_FIRST)


@dataclass(frozen=True)
class VersionStore:
    """Versions in the database, their weights in files, on PostgreSQL in both."""

    database: Database
    weights: WeightsFolder

    def add_and_promote(self, forecaster: Forecaster, *, report: dict[str, Any], at: datetime) -> Version:
        """Store a model that was learned elsewhere and let it serve from ``at`` on, in one transaction."""
        name = self.weights.save(forecaster)
        with self.database.write() as connection:
            row = insert(model_versions).values(
                created_us=to_us(at),
                weights=name,
                report=json.dumps(report),
                targets=json.dumps(forecaster.vocabulary.targets),
            )
            number = int(connection.execute(row).inserted_primary_key[0])  # type: ignore[index]
            keep(connection, self.weights, name)
            promote(connection, number, at=at, reason=None)
        return self.get(number)

    def promote(
        self, version: Version, *, at: datetime, who: str, reason: str, serving: int | None = None
    ) -> None:
        """Let a version serve from now on; who wished it and why is written down with it.

        If ``serving`` is given, only if that version serves until now.
        """
        _insist_on_weights(version, pruned=version.pruned)
        self.load(version)  # damaged weights must not begin to serve
        with self.database.write() as connection:
            champion = champion_number(connection)
            # Asked again where nobody prunes: they may have gone since the version was read.
            pruned = select(model_versions.c.pruned).where(model_versions.c.id == version.id)
            _insist_on_weights(version, pruned=connection.execute(pruned).scalar_one())
            if champion == version.id:
                raise Conflict(f"{version.name} serves already.")
            if serving not in {None, champion}:
                raise champion_changed_error(champion, believed=serving)
            promote(connection, version.id, at=at, reason=reason)
            _revive(connection, version.id, at=at)
            record(connection, at=at, who=who, action="promote", subject=version.name, reason=reason)

    def champion(self) -> Version | None:
        """Return the version promoted last."""
        query = _VERSION.join(promotions, promotions.c.version_id == model_versions.c.id)
        return self._one(query.order_by(_NEWEST_PROMOTION).limit(1))

    def champion_number(self) -> int | None:
        """Return only the number of the version promoted last, which is asked for often and waits for nobody."""
        with self.database.read() as connection:
            return connection.execute(_CHAMPION_NUMBER).scalar()

    def number_at(self, at: datetime) -> int | None:
        """Return the number of the version that served at a moment, if any did."""
        query = select(promotions.c.version_id).where(promotions.c.at_us <= to_us(at))
        with self.database.read() as connection:
            return connection.execute(query.order_by(_NEWEST_PROMOTION).limit(1)).scalar()

    def get(self, number: int) -> Version:
        """Return a version, or raise :class:`NotFound`."""
        found = self._one(_VERSION.where(model_versions.c.id == number))
        if found is None:
            raise NotFound(f"There is no version v{number}.")
        return found

    def all(self) -> list[Version]:
        """Return every version, newest first."""
        return self._read(_VERSION.order_by(_NEWEST_FIRST))

    def load(self, version: Version) -> Forecaster:
        """Return a version's model, its weights checked against their name."""
        return SharedWeights(self.database, self.weights).load(version.weights)

    def prune(self, *, keep: int) -> list[str]:
        """Delete weights and answers of all but the newest ``keep`` versions; return their names.

        Never those of the champion, of its parent, or of a version that a stored forecast was made with.
        """
        served = self.champion_number()  # it may make forecasts until another serves
        with self.database.read() as connection:  # a long look, and so outside of what others wait for
            needed = {served, *connection.execute(select(forecasts.c.version_id).distinct()).scalars()}
        with self.database.write() as connection:
            champion = champion_number(connection)  # from here to the end nobody promotes another
            versions = connection.execute(_LINEAGE).all()
            needed |= {champion, *(one.parent_id for one in versions if one.id == champion)}
            old = [one for one in versions[keep:] if one.id not in needed and not one.pruned]
            for version in old:
                connection.execute(
                    update(model_versions).where(model_versions.c.id == version.id).values(pruned=True)
                )
                connection.execute(
                    update(tasks).where(tasks.c.version_id == version.id).values(samples_id=None, kept=None)
                )
                _delete_predictions(connection, version.id)
            if old:
                kept = select(tasks.c.samples_id).where(tasks.c.samples_id.is_not(None))
                connection.execute(delete(samples).where(samples.c.id.not_in(kept)))
                forget(connection, [version.weights for version in old])
        self.clear_folder()
        used = {one.weights for one in versions if one not in old and not one.pruned}
        self.weights.sweep(used, older_than=time.time() - _STRAY_SECONDS)
        return [f"v{version.id}" for version in old]

    def clear_folder(self, *, older_than: float = inf) -> int:
        """Delete this host's files of versions that were pruned, here or elsewhere; return how many.

        None that somebody has touched since (Unix time), nor any of which the database knows nothing: it may be
        another database's.
        """
        with self.database.read() as connection:
            versions = connection.execute(_LINEAGE).all()
        used = {one.weights for one in versions if not one.pruned}
        pruned = {one.weights for one in versions if one.pruned} - used
        gone = pruned & self.weights.names(older_than=older_than)
        for name in gone:
            self.weights.delete(name)
        return len(gone)

    def _one(self, query: Select[Any]) -> Version | None:
        found = self._read(query)
        return found[0] if found else None

    def _read(self, query: Select[Any]) -> list[Version]:
        with self.database.read() as connection:
            rows = connection.execute(query).all()
            learned = _learned(connection, [row.id for row in rows])
        return [_version(row, learned[row.id]) for row in rows]


def promote(connection: Connection, version: int, *, at: datetime, reason: str | None) -> None:
    """Let a version serve, inside a transaction; other processes hear of it when that is committed."""
    notify(connection, ChampionPromoted())
    connection.execute(insert(promotions).values(version_id=version, at_us=to_us(at), reason=reason))


def _revive(connection: Connection, version: int, *, at: datetime) -> None:
    """Let machines live whose learning had failed, if the version that now serves has learned them."""
    learned = select(tasks.c.machine_id).where(tasks.c.version_id == version)
    failed = machines.c.state == MachineState.FAILED.value
    values = {"state": MachineState.LIVE.value, "reason": None, "learned_us": to_us(at)}
    connection.execute(update(machines).where(machines.c.id.in_(learned), failed).values(**values))


def champion_number(connection: Connection) -> int | None:
    """Return which version serves, inside a transaction until whose end nobody promotes another."""
    write_alone(connection, promotions)
    return connection.execute(_CHAMPION_NUMBER).scalar()


def _insist_on_weights(version: Version, *, pruned: bool) -> None:
    if pruned:
        raise Conflict(f"The weights of {version.name} have been deleted; choose a version that has its own.")


def _learned(connection: Connection, versions: Sequence[int]) -> dict[int, tuple[str, ...]]:
    query = (
        select(tasks.c.version_id, machines.c.site, machines.c.machine)
        .join(machines, machines.c.id == tasks.c.machine_id)
        .where(tasks.c.version_id.in_(versions))
        .order_by(tasks.c.version_id, tasks.c.position)
    )
    learned: dict[int, list[str]] = {version: [] for version in versions}
    for version, site, machine in connection.execute(query):
        learned[version].append(f"{site}/{machine}")
    return {version: tuple(names) for version, names in learned.items()}


def _version(row: Row[Any], learned: tuple[str, ...]) -> Version:
    return Version(
        id=row.id,
        created_at=from_us(row.created_us),
        weights=row.weights,
        report=json.loads(row.report),
        promoted_at=from_us(row.promoted_us) if row.promoted_us is not None else None,
        parent=row.parent_id,
        learned=learned,
        targets=tuple(json.loads(row.targets)),
        pruned=row.pruned,
    )


def _delete_predictions(connection: Connection, version: int) -> None:
    """Drop what a version said, inside a transaction; its figures stay."""
    connection.execute(
        update(evaluation_results).where(evaluation_results.c.version_id == version).values(probabilities=None)
    )
