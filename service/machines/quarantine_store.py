"""The quarantine, read in pages; it is written with the events, up to a limit for each machine."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from service.database.dialect import insert_rows
from service.database.engine import Database
from service.database.tables import machines, quarantine
from service.errors import NotFound
from service.http.principal import Sites
from service.machines.events import QuarantineRow
from service.machines.limits_store import NO_MACHINE
from service.machines.models import ExcessKind, MachineLimits, QuarantinedItem, QuarantineQuery, ReasonCount
from wire.identity import MachineId
from wire.timestamps import from_us

_COLUMNS = ("machine_id", "topic", "reason", "detail", "body", "sha256", "received_us")
_in_order = attrgetter("topic", "reason", "body")
_ITEMS = select(quarantine, machines.c.site, machines.c.machine).join_from(
    quarantine, machines, isouter=True, onclause=machines.c.id == quarantine.c.machine_id
)


def insert_quarantined(
    connection: Connection, refused: Sequence[QuarantineRow], received_us: int, limits: MachineLimits
) -> Counter[tuple[int, ExcessKind]]:
    """Store what was refused inside a transaction; return how much of each machine's had no room.

    A machine whose share is full keeps what it has, and a few samples of every reason that it has few of.
    """
    left_out: Counter[tuple[int, ExcessKind]] = Counter()
    if not refused:
        return left_out
    by_machine: dict[int | None, list[QuarantineRow]] = defaultdict(list)
    for row in sorted(refused, key=_in_order):
        by_machine[row.machine].append(row)
    values = []
    for machine, rows in by_machine.items():
        kept = list(_with_room(connection, machine, rows, limits))
        values += [(*row[:4], row.body, sha256(row.body).hexdigest(), received_us) for row in kept]
        if len(kept) < len(rows):
            left_out[machine or NO_MACHINE, ExcessKind.QUARANTINE] += len(rows) - len(kept)
    insert_rows(connection, quarantine, _COLUMNS, sorted(values, key=lambda value: value[1:3] + value[5:6]))
    return left_out


def _with_room(
    connection: Connection, machine: int | None, rows: Sequence[QuarantineRow], limits: MachineLimits
) -> Iterator[QuarantineRow]:
    of_machine = quarantine.c.machine_id.is_(None) if machine is None else quarantine.c.machine_id == machine
    used = select(quarantine.c.reason, func.count(), func.sum(func.length(quarantine.c.body)))
    found = connection.execute(used.where(of_machine).group_by(quarantine.c.reason)).all()
    of_reason = Counter({reason: count for reason, count, _ in found})
    items, size = of_reason.total(), sum(int(length) for _, _, length in found)
    for row in rows:
        has_room = items < limits.quarantined and size + len(row.body) <= limits.quarantined_bytes
        if has_room or of_reason[row.reason] < limits.samples:
            of_reason[row.reason] += 1
            items, size = items + 1, size + len(row.body)
            yield row


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
            return [ReasonCount(reason, items, from_us(last)) for reason, items, last in connection.execute(query)]


def _item(row: Row[Any]) -> QuarantinedItem:
    machine = MachineId(row.site, row.machine) if row.site is not None else None
    received = from_us(row.received_us)
    return QuarantinedItem(
        row.id, received, machine, row.topic, row.reason, row.detail, row.sha256, bytes(row.body)
    )
