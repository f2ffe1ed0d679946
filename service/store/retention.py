"""Forgetting: old rows go in small pieces, so that ingest never waits long behind them."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select, text

from service.store.engine import Database
from service.store.tables import (
    acknowledgements,
    events,
    forecasts,
    gaps,
    machines,
    maintenance,
    notices,
    quarantine,
    shelves,
)
from wire.micros import micros, moment

_BYTES_AN_EVENT = 150  # row and index entries on PostgreSQL, whose files do not shrink when rows go
_OLD = text(
    "DELETE FROM events WHERE (epoch_id, seq) IN (SELECT epoch_id, seq FROM events"
    " WHERE machine_id = :machine AND flag = 0 AND at_us < :before LIMIT :most)"
)
_OLD_FLAGGED = text(
    "DELETE FROM events WHERE (epoch_id, seq) IN (SELECT epoch_id, seq FROM events"
    " WHERE machine_id = :machine AND flag <> 0 AND received_us < :before LIMIT :most)"
)


@dataclass(frozen=True)
class RetentionStore:
    """Deletes, and knows how large everything is."""

    database: Database

    def size(self) -> int:
        """Return the bytes that are in use, without what deleted rows have left free."""
        with self.database.read() as connection:
            if not self.database.is_sqlite:
                return (
                    int(connection.execute(select(func.count()).select_from(events)).scalar_one())
                    * _BYTES_AN_EVENT
                )
            pages, free, size = (
                int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
                for name in ("page_count", "freelist_count", "page_size")
            )
        return (pages - free) * size

    def oldest(self) -> datetime | None:
        """Return the time of the oldest trustworthy event."""
        first = text("SELECT min(at_us) FROM events WHERE machine_id = :machine AND flag = 0")
        with self.database.read() as connection:
            firsts = [connection.execute(first, {"machine": row}).scalar() for row in self._machines()]
        known = [at for at in firsts if at is not None]
        return moment(min(known)) if known else None

    def forget_events(self, before: datetime, most: int) -> int:
        """Delete up to ``most`` events of each machine that are older; return how many went."""
        gone = 0
        for machine in self._machines():
            for statement in (_OLD, _OLD_FLAGGED):
                with self.database.write() as connection:
                    values = {"machine": machine, "before": micros(before), "most": most}
                    gone += connection.execute(statement, values).rowcount
        return gone

    def forget_beside(self, before: datetime, quarantined_before: datetime) -> int:
        """Delete gaps, stored forecasts and notices of that time, and what has been quarantined for long.

        Deliveries go with their notice. What is open, or holds, is of the present however old it is.
        """
        then = micros(before)
        with self.database.write() as connection:
            statements = (
                delete(gaps).where(gaps.c.last_us < micros(before)),
                delete(forecasts).where(forecasts.c.as_of_us < micros(before)),
                delete(shelves).where(shelves.c.until_us < then),
                delete(maintenance).where(maintenance.c.until_us < then),
                delete(acknowledgements).where(acknowledgements.c.ended_us < then),
                delete(notices).where(notices.c.rearmed_us < then),
                delete(quarantine).where(quarantine.c.received_us < micros(quarantined_before)),
            )
            return sum(connection.execute(statement).rowcount for statement in statements)

    def _machines(self) -> list[int]:
        with self.database.read() as connection:
            return list(connection.execute(select(machines.c.id).order_by(machines.c.id)).scalars())
