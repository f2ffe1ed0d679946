"""Whose turn it is: held for a while by one process, taken over by another once that while is over.

The while is measured by the database's clock alone, so hosts need not agree on the time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, TextClause, delete, text

from service.database.dialect import NOW_US
from service.database.engine import Database
from service.database.tables import leases
from service.messaging.process import Lease

_HOLD = (
    "INSERT INTO leases (name, owner, expires_us) VALUES (:name, :owner, {now} + :lease_us)"
    " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_us = excluded.expires_us"
    " WHERE leases.owner = excluded.owner OR leases.expires_us < {now}"
)


@dataclass(frozen=True)
class LeaseStore:
    """Gives turns to one process at a time."""

    database: Database

    def acquire(self, wanted: Iterable[Lease], owner: str, lease: timedelta) -> set[Lease]:
        """Take or keep every turn that is free or already the owner's; return those that are now the owner's."""
        held = set()
        with self.database.write() as connection:
            for turn in sorted(wanted):
                values = {"name": turn.value, "owner": owner, "lease_us": lease // timedelta(microseconds=1)}
                if connection.execute(_hold(connection), values).rowcount:
                    held.add(turn)
        return held

    def release(self, owner: str) -> None:
        """Give back every turn that is the owner's, so that another need not wait."""
        with self.database.write() as connection:
            connection.execute(delete(leases).where(leases.c.owner == owner))


def _hold(connection: Connection) -> TextClause:
    return text(_HOLD.format(now=NOW_US[connection.dialect.name]))
