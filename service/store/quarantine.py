"""The quarantine, read in pages; it is written with the events and released with them too."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, func, select

from service.core.principal import Sites
from service.core.quarantine import QuarantinedItem, QuarantineQuery, ReasonCount
from service.errors import NotFound
from service.store.engine import Database
from service.store.tables import machines, quarantine
from wire.identity import MachineId
from wire.micros import moment

_ITEMS = select(quarantine, machines.c.site, machines.c.machine).join_from(
    quarantine, machines, isouter=True, onclause=machines.c.id == quarantine.c.machine_id
)


@dataclass(frozen=True)
class QuarantineStore:
    """Looks; only a recording changes anything."""

    database: Database

    def page(self, query: QuarantineQuery) -> list[QuarantinedItem]:
        """Return up to ``limit`` items, newest first."""
        statement: Select[Any] = _ITEMS.order_by(quarantine.c.id.desc()).limit(query.limit)
        if query.before is not None:
            statement = statement.where(quarantine.c.id < query.before)
        if query.reason is not None:
            statement = statement.where(quarantine.c.reason == query.reason)
        if query.machine is not None:
            site, name = query.machine
            statement = statement.where(machines.c.site == site, machines.c.machine == name)
        if query.sites is not None:
            statement = statement.where(machines.c.site.in_(query.sites))
        with self.database.read() as connection:
            return [_item(row) for row in connection.execute(statement)]

    def get(self, number: int) -> QuarantinedItem:
        """Return one item, or raise :class:`NotFound`."""
        with self.database.read() as connection:
            row = connection.execute(_ITEMS.where(quarantine.c.id == number)).one_or_none()
        if row is None:
            raise NotFound(f"Nothing is quarantined under number {number}; it may have been replayed.")
        return _item(row)

    def reasons(self, *, sites: Sites = None) -> list[ReasonCount]:
        """Return how much is quarantined for which reason, most first; with ``sites`` of their machines only."""
        # Counted in the index alone: the rows hold bodies, and a health page asks every few seconds.
        newest = func.max(quarantine.c.id).label("newest")
        counted = select(quarantine.c.reason, func.count().label("items"), newest).group_by(quarantine.c.reason)
        if sites is not None:
            counted = counted.join(machines, machines.c.id == quarantine.c.machine_id)
            counted = counted.where(machines.c.site.in_(sites))
        by_reason = counted.subquery()
        query = (
            select(by_reason.c.reason, by_reason.c["items"], quarantine.c.received_us)
            .join(quarantine, quarantine.c.id == by_reason.c.newest)
            .order_by(by_reason.c["items"].desc(), by_reason.c.reason)
        )
        with self.database.read() as connection:
            return [ReasonCount(reason, items, moment(last)) for reason, items, last in connection.execute(query)]


def _item(row: Row[Any]) -> QuarantinedItem:
    machine = MachineId(row.site, row.machine) if row.site is not None else None
    received = moment(row.received_us)
    return QuarantinedItem(
        row.id, received, machine, row.topic, row.reason, row.detail, row.sha256, bytes(row.body)
    )
