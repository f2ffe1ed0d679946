"""Deletion of old rows: whole monthly partitions where they exist, the rest in short transactions."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import TextClause, delete, select, text

from service.database import partitions
from service.database.engine import Database
from service.database.info import bytes_in_use
from service.database.tables import (
    acknowledgements,
    answers,
    gaps,
    limit_counts,
    machines,
    maintenance_windows,
    notifications,
    quarantine,
    shelved_alarms,
)
from service.errors import Unavailable
from service.machines.epoch_store import crowded, forget_empty
from wire.timestamps import from_us, to_us

log = logging.getLogger(__name__)

_MANY_EPOCHS = 100  # of a machine; fewer are not worth a look

# Both halves name flag and time, so that PostgreSQL looks only into the tables that can hold such rows.
_OLD = text(
    "DELETE FROM events WHERE flag = 0 AND at_us < :before AND (epoch_id, seq) IN (SELECT epoch_id, seq"
    " FROM events WHERE machine_id = :machine AND flag = 0 AND at_us < :before LIMIT :most)"
)
_OLD_FLAGGED = text(
    "DELETE FROM events WHERE flag <> 0 AND (epoch_id, seq) IN (SELECT epoch_id, seq"
    " FROM events WHERE machine_id = :machine AND flag <> 0 AND received_us < :before LIMIT :most)"
)
# Outcomes go with their forecast.
_OLD_FORECASTS = text(
    "DELETE FROM forecasts WHERE machine_id = :machine AND as_of_us < :before AND as_of_us IN (SELECT as_of_us"
    " FROM forecasts WHERE machine_id = :machine AND as_of_us < :before LIMIT :most)"
)
# Machine by machine, one look at the index's beginning for each.
_OLDEST = (
    text("SELECT min((SELECT min(at_us) FROM events WHERE machine_id = machines.id AND flag = 0)) FROM machines"),
    text("SELECT min((SELECT min(as_of_us) FROM forecasts WHERE machine_id = machines.id)) FROM machines"),
)


_NEWEST_BEFORE = text(
    "SELECT max((SELECT max(at_us) FROM events WHERE machine_id = machines.id AND flag = 0 AND at_us < :before))"
    " FROM machines"
)


@dataclass(frozen=True)
class RetentionStore:
    """Deletes, and knows how large everything is."""

    database: Database

    def size(self) -> int:
        """Return the bytes that are in use, without what deleted rows have left free."""
        if not self.database.is_sqlite:
            with self.database.write() as connection:
                return bytes_in_use(connection)
        with self.database.read() as connection:
            pages, free, bytes_a_page = (
                int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
                for name in ("page_count", "freelist_count", "page_size")
            )
        return (pages - free) * bytes_a_page

    def oldest(self) -> datetime | None:
        """Return the time of the oldest trustworthy event, or of the oldest forecast if that is older."""
        with self.database.read() as connection:
            found = [connection.execute(statement).scalar() for statement in _OLDEST]
        return min((from_us(first) for first in found if first is not None), default=None)

    def newest_before(self, before: datetime) -> datetime | None:
        """Return the time of the newest trustworthy event before a moment."""
        with self.database.read() as connection:
            found = connection.execute(_NEWEST_BEFORE, {"before": to_us(before)}).scalar()
        return None if found is None else from_us(found)

    def delete_events(self, before: datetime, most: int) -> int:
        """Delete a month that is over, or up to ``most`` older events of each machine; return how many went."""
        gone = self._forget_a_month(before)
        if gone:
            return gone
        return self._forget_rows((_OLD, _OLD_FLAGGED), before, most)

    def delete_forecasts(self, before: datetime, most: int) -> int:
        """Delete up to ``most`` older forecasts of each machine, with their outcomes; return how many went."""
        return self._forget_rows((_OLD_FORECASTS,), before, most)

    def delete_other(self, before: datetime, quarantined_before: datetime) -> int:
        """Delete gaps and notices of that time, what has been quarantined for long, and empty epochs.

        Deliveries go with their notice. What is open, or holds, is of the present however old it is.
        """
        then = to_us(before)
        with self.database.write() as connection:
            statements = (
                delete(gaps).where(gaps.c.last_us < to_us(before)),
                delete(shelved_alarms).where(shelved_alarms.c.until_us < then),
                delete(maintenance_windows).where(maintenance_windows.c.until_us < then),
                delete(answers).where(answers.c.at_us < then),
                delete(acknowledgements).where(acknowledgements.c.ended_us < then),
                delete(notifications).where(notifications.c.rearmed_us < then),
                delete(quarantine).where(quarantine.c.received_us < to_us(quarantined_before)),
                delete(limit_counts).where(limit_counts.c.last_us < to_us(quarantined_before)),
            )
            gone = sum(connection.execute(statement).rowcount for statement in statements)
        return gone + self._forget_empty_epochs()

    def _forget_empty_epochs(self) -> int:
        """Delete epochs without events, of machines that have many; return how many went."""
        with self.database.read() as connection:
            many = crowded(connection, _MANY_EPOCHS)
        gone = 0
        for machine in many:
            with self.database.write() as connection:
                gone += forget_empty(connection, machine)
        return gone

    def _forget_rows(self, statements: Sequence[TextClause], before: datetime, most: int) -> int:
        """Delete a piece of each machine's, each in a transaction of its own."""
        gone = 0
        for machine in self._machines():
            for statement in statements:
                with self.database.write() as connection:
                    values = {"machine": machine, "before": to_us(before), "most": most}
                    gone += connection.execute(statement, values).rowcount
        return gone

    def _forget_a_month(self, before: datetime) -> int:
        """Drop the months that are over up to the first with events in it; return how many went with that."""
        if self.database.is_sqlite:
            return 0
        with self.database.read() as connection:
            over = partitions.months_before(connection, before)
        for month in over:
            try:
                with self.database.write() as connection:
                    gone = partitions.drop_month(connection, month)
            except Unavailable as error:  # blocked by a long read; deleting rows does not wait for it
                log.info("could not drop the events of %d-%02d as a whole: %s", *month, error)
                return 0
            if gone:
                return gone
        return 0

    def _machines(self) -> list[int]:
        with self.database.read() as connection:
            return list(connection.execute(select(machines.c.id).order_by(machines.c.id)).scalars())
