"""Monthly partitions (UTC) of the events table on PostgreSQL; SQLite has a single table.

``events`` is partitioned by flag first: events in time go to ``events_in_time``, which is partitioned by month,
flagged ones to ``events_flagged``. So queries with ``flag = 0`` read months in order, and an implausible time
needs no partition.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, text

from service.database.engine import Database
from service.database.event_row import IN_TIME, EventRow
from service.database.locks import Advisory
from wire.timestamps import from_us, to_us

_DAY_US = to_us(datetime(1970, 1, 2, tzinfo=UTC))
_DECEMBER = 12
_LOCK = text("SELECT pg_advisory_xact_lock(:key)")
_EXISTING = text(
    "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
    " WHERE inhparent = 'events_in_time'::regclass ORDER BY relname"
)
# Attached while empty, so that readers and writers of other months never wait.
_CREATE = (
    "CREATE TABLE {table} (LIKE events_in_time INCLUDING ALL)",
    "ALTER TABLE events_in_time ATTACH PARTITION {table} FOR VALUES FROM ({start}) TO ({end})",
)
# A drop waits for readers of events and blocks all others meanwhile; it is retried later instead.
_LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '100ms'")


class Month(NamedTuple):
    """A calendar month in UTC."""

    year: int
    month: int

    @property
    def table(self) -> str:
        return f"events_{self.year:04}_{self.month:02}"

    @property
    def next(self) -> "Month":
        return Month(self.year + 1, 1) if self.month == _DECEMBER else Month(self.year, self.month + 1)

    @property
    def start(self) -> datetime:
        return datetime(self.year, self.month, 1, tzinfo=UTC)


@dataclass
class Months:
    """Creates missing partitions before events are stored."""

    database: Database
    _known: set[Month] = field(default_factory=set)

    def prepare(self, events: Iterable[EventRow]) -> None:
        """Create the partitions that events need, in a separate short transaction."""
        if self.database.is_sqlite:
            return
        wanted = months_of(at_us for _, _, _, _, at_us, flag in events if flag == IN_TIME) - self._known
        if wanted:
            with self.database.write() as connection:
                create_months(connection, wanted)
            self._known |= wanted

    def forget(self) -> None:
        """Forget which partitions exist, after one was missing."""
        self._known.clear()


def months_of(moments: Iterable[int]) -> set[Month]:
    """Return the months of times in microseconds."""
    days = {at_us // _DAY_US for at_us in moments}  # far fewer than moments
    return {Month(day.year, day.month) for day in (from_us(number * _DAY_US) for number in days)}


def create_months(connection: Connection, months: Iterable[Month]) -> None:
    """Create missing partitions of months and of the month after each, inside a transaction."""
    wanted = {needed for month in months for needed in (month, month.next)}
    if not wanted - set(existing_months(connection)):
        return
    connection.execute(_LOCK, {"key": Advisory.MONTHS.value})
    for month in sorted(wanted - set(existing_months(connection))):  # others may have created some meanwhile
        names = {"table": month.table, "start": to_us(month.start), "end": to_us(month.next.start)}
        for statement in _CREATE:
            connection.exec_driver_sql(statement.format(**names))


def existing_months(connection: Connection) -> list[Month]:
    """Return the months that have a partition, oldest first."""
    names = (re.fullmatch(r"events_(\d{4})_(\d{2})", name) for name in connection.execute(_EXISTING).scalars())
    return [Month(int(name[1]), int(name[2])) for name in names if name]


def months_before(connection: Connection, before: datetime) -> list[Month]:
    """Return the months that end at least a day before a time, oldest first.

    The day covers events that were in time when received and are being stored now.
    """
    return [month for month in existing_months(connection) if month.next.start + timedelta(days=1) <= before]


def drop_month(connection: Connection, month: Month) -> int:
    """Drop a partition inside a transaction; return its number of events."""
    rows = connection.exec_driver_sql(f"SELECT count(*) FROM {month.table}").scalar_one()  # noqa: S608 - our name
    connection.execute(_LOCK_TIMEOUT)
    connection.exec_driver_sql(f"DROP TABLE {month.table}")
    return int(rows)
