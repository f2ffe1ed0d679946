"""Weights in PostgreSQL too: processes on several hosts share no folder, and each has its own as a cache.

A file that is missing or damaged is written again from the database. SQLite has files alone: one host has both,
and a backup copies them beside each other.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, exists, select

from forecasting.forecaster import Forecaster
from service.database.dialect import insert_new
from service.database.engine import Database
from service.database.tables import model_versions, weights
from service.database.weight_files import WeightsFolder
from service.errors import Unavailable


@dataclass(frozen=True)
class SharedWeights:
    """Reads weights from wherever they are whole, and sees to it that they are so everywhere."""

    database: Database
    folder: WeightsFolder

    def load(self, name: str) -> Forecaster:
        """Return a model, or raise :class:`Unavailable` if neither folder nor database has it whole."""
        try:
            forecaster = self.folder.load(name)
        except Unavailable:
            if not self._fetch(name):
                raise
            return self.folder.load(name)
        self._give(name)
        return forecaster

    def _fetch(self, name: str) -> bool:
        """Write a file again from the database; False if that does not have it either."""
        if self.database.is_sqlite:
            return False
        with self.database.read() as connection:
            body = connection.execute(select(weights.c.body).where(weights.c.sha256 == name)).scalar()
        if body is None:
            return False
        try:
            self.folder.write(name, bytes(body))
        except OSError as error:
            where = self.folder.path
            raise Unavailable(f"Weights cannot be kept in {where}: {error.strerror}. Make room there.") from None
        return True

    def _give(self, name: str) -> None:
        """Give the database what it did not keep yet when that was learned; whoever only reads does not."""
        if self.database.is_sqlite or self.database.read_only:
            return
        with self.database.read() as connection:
            known = connection.execute(select(exists().where(weights.c.sha256 == name))).scalar_one()
        if not known:
            with self.database.write() as connection:
                keep(connection, self.folder, name)


def keep(connection: Connection, folder: WeightsFolder, name: str) -> None:
    """Write weights into the database, inside the transaction of the version that they belong to."""
    if connection.dialect.name != "sqlite":
        connection.execute(insert_new(connection, weights, {"sha256": name, "body": folder.read(name)}))


def forget(connection: Connection, names: Collection[str]) -> None:
    """Delete weights from the database, inside a transaction, unless another version needs them."""
    needed = select(model_versions.c.weights).where(model_versions.c.pruned.is_(False))
    chosen = weights.c.sha256.in_(names), weights.c.sha256.not_in(needed)
    connection.execute(delete(weights).where(*chosen))
