"""Events on PostgreSQL, a table for every calendar month (UTC): made before it is needed, dropped once it is over.

``events`` is split by flag first. What is in time goes on to ``events_in_time``, which is split by month; what is
flagged, whose time nobody believes, stays together in ``events_flagged``. So a query for ``flag = 0`` reads the
months in their order, and no impossible time calls for a month of its own. SQLite has one table for all.
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
_MADE = text(
    "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
    " WHERE inhparent = 'events_in_time'::regclass ORDER BY relname"
)
# Empty when it is attached, so that readers and writers of the other months never wait for it.
_MAKE = (
    "CREATE TABLE {table} (LIKE events_in_time INCLUDING ALL)",
    "ALTER TABLE events_in_time ATTACH PARTITION {table} FOR VALUES FROM ({start}) TO ({end})",
)
# A drop waits for whoever reads events and lets all others wait behind itself; better to try again another time.
_PATIENCE = text("SET LOCAL lock_timeout = '100ms'")


class Month(NamedTuple):
    """A calendar month in UTC."""

    year: int
    month: int

    @property
    def table(self) -> str:
        """The name of the table with its events."""
        return f"events_{self.year:04}_{self.month:02}"

    @property
    def next(self) -> "Month":
        """The month after it."""
        return Month(self.year + 1, 1) if self.month == _DECEMBER else Month(self.year, self.month + 1)

    @property
    def start(self) -> datetime:
        """Its first moment."""
        return datetime(self.year, self.month, 1, tzinfo=UTC)


@dataclass
class Months:
    """Sees to it that every month has its table before events of it are stored."""

    database: Database
    _known: set[Month] = field(default_factory=set)

    def prepare(self, events: Iterable[EventRow]) -> None:
        """Make the tables that these events need, in a transaction of its own: nobody waits for it for long."""
        if self.database.is_sqlite:
            return
        wanted = months_of(at_us for _, _, _, _, at_us, flag in events if flag == IN_TIME) - self._known
        if wanted:
            with self.database.write() as connection:
                make(connection, wanted)
            self._known |= wanted

    def forget(self) -> None:
        """Look again next time, because a table was not there any more."""
        self._known.clear()


def months_of(moments: Iterable[int]) -> set[Month]:
    """Return the months that moments, in microseconds, lie in."""
    days = {at_us // _DAY_US for at_us in moments}  # far fewer than moments
    return {Month(day.year, day.month) for day in (from_us(number * _DAY_US) for number in days)}


def make(connection: Connection, months: Iterable[Month]) -> None:
    """Make the tables of months that have none, and that of the month after each, inside a transaction.

    A month has its table before its first event comes, because the month before it made it.
    """
    wanted = {one for month in months for one in (month, month.next)}
    if not wanted - set(made(connection)):
        return
    connection.execute(_LOCK, {"key": Advisory.MONTHS.value})
    for month in sorted(wanted - set(made(connection))):  # asked again: others may have made some meanwhile
        names = {"table": month.table, "start": to_us(month.start), "end": to_us(month.next.start)}
        for statement in _MAKE:
            connection.exec_driver_sql(statement.format(**names))


def made(connection: Connection) -> list[Month]:
    """Return every month that has a table, oldest first."""
    names = (re.fullmatch(r"events_(\d{4})_(\d{2})", name) for name in connection.execute(_MADE).scalars())
    return [Month(int(found[1]), int(found[2])) for found in names if found]


def over(connection: Connection, before: datetime) -> list[Month]:
    """Return the months of which nothing is younger than a moment, oldest first.

    A month ends a day late: somebody may just be storing an event that was in time when it came.
    """
    return [month for month in made(connection) if month.next.start + timedelta(days=1) <= before]


def drop(connection: Connection, month: Month) -> int:
    """Drop a month with all its events inside a transaction; return how many there were."""
    held = connection.exec_driver_sql(f"SELECT count(*) FROM {month.table}").scalar_one()  # noqa: S608 - our name
    connection.execute(_PATIENCE)
    connection.exec_driver_sql(f"DROP TABLE {month.table}")
    return int(held)
