"""Events: committed once whatever is resent, read by time, shown in pages."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    TextClause,
    delete,
    func,
    select,
    text,
    tuple_,
)
from sqlalchemy.exc import IntegrityError

from forecasting.series import AlarmSeries
from service.core.evidence import Evidence
from service.core.history import AlarmPage, Cursor, GapRecord, PageQuery, StoredAlarm
from service.core.machine import Machine
from service.core.recording import (
    FROM_THE_FUTURE,
    TOO_OLD,
    Quarantined,
    Recorded,
    Recording,
)
from service.errors import Unavailable
from service.store import arrivals
from service.store.clashes import Clash, conflicts, known_before, renumbered
from service.store.dialect import insert_rows
from service.store.engine import Database
from service.store.evidence import evidence
from service.store.late import note_late
from service.store.machines import epoch_number, record_knocks, record_rivals, record_signs_of_life
from service.store.partitions import Months
from service.store.tables import epochs, events, gaps, quarantine
from wire.micros import micros, moment

_EVENT_COLUMNS = ("epoch_id", "seq", "machine_id", "code", "at_us", "received_us", "flag")
_GAP_COLUMNS = ("epoch_id", "first_seq", "last_seq", "machine_id", "first_us", "last_us", "reason", "received_us")
# A gap that goes on is told again, longer; a shorter one is from before, and what was acked is never forgotten.
_A_GAP_GROWS = (
    "(epoch_id, first_seq) DO UPDATE SET last_seq = excluded.last_seq, first_us = excluded.first_us,"
    " last_us = excluded.last_us, reason = excluded.reason, received_us = excluded.received_us"
    " WHERE excluded.last_seq >= gaps.last_seq"
)
_QUARANTINE_COLUMNS = ("machine_id", "topic", "reason", "detail", "body", "sha256", "received_us")
# Rows of one batch stand together, so grouping them hashes an epoch once a batch instead of once an event.
_of_epoch = itemgetter(0, 1)
_of_quarantine = attrgetter("topic", "reason", "body")
_NO_PARTITION = "23514"  # what PostgreSQL says of a row that no table takes
_FLAGS = {FROM_THE_FUTURE: "from_the_future", TOO_OLD: "too_old"}
# Written with the literal the partial index names, or neither database would use it.
_WINDOW = text(
    "SELECT at_us, code FROM events WHERE machine_id = :machine AND at_us >= :start AND at_us < :end AND flag = 0"
    " ORDER BY at_us, code"
)
_IN_TIME_ONLY, _FLAGGED_ONLY = text("flag = 0"), text("flag <> 0")
_FIRST = text("SELECT min(at_us) FROM events WHERE machine_id = :machine AND flag = 0")
_FLAGGED = text("SELECT count(*) FROM events WHERE machine_id = :machine AND flag <> 0")
_SPANS = text(
    "SELECT min(at_us), max(at_us) FROM events WHERE machine_id = :machine AND flag = 0 GROUP BY epoch_id"
)
_LAST = text("SELECT max(at_us) FROM events WHERE machine_id = :machine AND flag = 0")


@dataclass
class EventStore:
    """The event log of the whole fleet."""

    database: Database
    _epochs: dict[tuple[int, UUID], int] = field(default_factory=dict)
    _months: Months = field(init=False)

    def __post_init__(self) -> None:
        self._months = Months(self.database)

    def commit(self, recording: Recording) -> Recorded:
        """Write all that a recording holds in one transaction; a repeated event changes nothing."""
        self._months.prepare(recording.events)
        with self._months_may_be_gone(), self.database.write() as connection:
            # Each step touches its rows in one order, so that commits of several processes never wait in a circle.
            numbers = self._epoch_numbers(connection, recording)
            held = None if self.database.is_sqlite else arrivals.hold(connection, numbers.values())
            _release(connection, recording.released)
            if held is None:
                recorded, clashes = _insert_events(connection, recording, numbers)
            else:
                recorded, clashes = arrivals.store(connection, recording, numbers, held)
            if clashes and recording.renumber_clashes:
                recorded, clashes, more = self._renumber(connection, recording, recorded, clashes)
                numbers |= more
            _insert_gaps(connection, recording, numbers)
            note_late(connection, recording, stored=recorded.stored)
            _insert_quarantined(
                connection, [*recording.quarantined, *conflicts(connection, clashes)], recording.received_us
            )
            record_signs_of_life(connection, recording.told, recording.heard, recording.received_us)
            record_rivals(connection, recording.rivals)
            record_knocks(connection, recording.knocking, recording.received_us)
        self._epochs |= numbers  # only now: a rolled-back number must not be remembered
        return recorded

    def series(self, machine: Machine, start: datetime, end: datetime) -> AlarmSeries:
        """Return a machine's trustworthy alarms in ``[start, end)``, in an order that arrival cannot change."""
        bounds = {"machine": machine.row, "start": micros(start), "end": micros(end)}
        with self.database.read() as connection:
            rows = connection.execute(_WINDOW, bounds).fetchall()
        table = np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, 2)
        return AlarmSeries(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))

    def evidence(self, machines: Sequence[Machine], start: datetime, end: datetime) -> list[Evidence]:
        """Return what forecasts of many machines are made from, in their order, with a few statements for all."""
        with self.database.read() as connection:
            return evidence(connection, machines, micros(start), micros(end))

    def first_at(self, machine: Machine) -> datetime | None:
        """Return when the machine's trustworthy history begins."""
        return self._moment(_FIRST, machine)

    def last_at(self, machine: Machine) -> datetime | None:
        """Return when the machine's trustworthy history ends."""
        return self._moment(_LAST, machine)

    def _moment(self, query: TextClause, machine: Machine) -> datetime | None:
        with self.database.read() as connection:
            found = connection.execute(query, {"machine": machine.row}).scalar()
        return moment(found) if found is not None else None

    def spans(self, machine: Machine) -> list[tuple[datetime, datetime]]:
        """Return when each epoch, a spool or a history file, has its first and its last trustworthy alarm."""
        with self.database.read() as connection:
            rows = connection.execute(_SPANS, {"machine": machine.row})
            return [(moment(first), moment(last)) for first, last in rows]

    def flagged(self, machine: Machine) -> int:
        """Return how many of a machine's events are kept out of windows for their time."""
        with self.database.read() as connection:
            return int(connection.execute(_FLAGGED, {"machine": machine.row}).scalar_one())

    def heard_since(self, machine: Machine, epoch: UUID, since: datetime) -> bool:
        """Say whether an event of this spool was received at or after a moment."""
        query = (
            select(events.c.seq)
            .join(epochs, epochs.c.id == events.c.epoch_id)
            .where(
                epochs.c.machine_id == machine.row, epochs.c.epoch == epoch, events.c.received_us >= micros(since)
            )
        )
        with self.database.read() as connection:
            return connection.execute(query.limit(1)).scalar() is not None

    def gaps(self, machine: Machine, start: datetime, end: datetime) -> list[GapRecord]:
        """Return the gaps that touch ``[start, end)``, in time order."""
        query = (
            select(gaps)
            .where(
                gaps.c.machine_id == machine.row,
                gaps.c.last_us >= micros(start),
                gaps.c.first_us < micros(end),
            )
            .order_by(gaps.c.first_us)
        )
        with self.database.read() as connection:
            return [_gap_record(row) for row in connection.execute(query)]

    def exact_gaps(self, machine: Machine, start: datetime, end: datetime) -> list[tuple[GapRecord, int]]:
        """Return gaps as above, each with how many of its numbers are really missing.

        An agent may drop what was already on its way; such events arrive, and the gap is smaller than it says.
        """
        arrived = (
            select(func.count())
            .select_from(events)
            .where(
                events.c.epoch_id == gaps.c.epoch_id,
                events.c.seq >= gaps.c.first_seq,
                events.c.seq <= gaps.c.last_seq,
            )
            .scalar_subquery()
        )
        query = (
            select(gaps, arrived.label("arrived"))
            .where(
                gaps.c.machine_id == machine.row,
                gaps.c.last_us >= micros(start),
                gaps.c.first_us < micros(end),
            )
            .order_by(gaps.c.first_us, gaps.c.first_seq)
        )
        with self.database.read() as connection:
            return [
                (_gap_record(row), row.last_seq - row.first_seq + 1 - row.arrived)
                for row in connection.execute(query)
            ]

    def page(self, machine: Machine, query: PageQuery) -> AlarmPage:
        """Return a page of a machine's alarms, newest first."""
        place = (events.c.at_us, events.c.code, events.c.epoch_id, events.c.seq)
        wanted: list[ColumnElement[bool]] = [events.c.machine_id == machine.row]
        if query.since is not None:
            wanted.append(events.c.at_us >= micros(query.since))
        if query.until is not None:
            wanted.append(events.c.at_us < micros(query.until))
        if query.code is not None:
            wanted.append(events.c.code == query.code)
        if query.before is not None:
            wanted.append(tuple_(*place) < tuple_(*query.before))
        kind = _FLAGGED_ONLY if query.flagged else _IN_TIME_ONLY
        newest_first = [part.desc() for part in place]
        statement = select(events).where(*wanted, kind).order_by(*newest_first).limit(query.limit + 1)
        with self.database.read() as connection:
            rows = connection.execute(statement).fetchall()
        shown, more = rows[: query.limit], len(rows) > query.limit
        alarms = [
            StoredAlarm(moment(row.at_us), row.code, moment(row.received_us), _FLAGS.get(row.flag))
            for row in shown
        ]
        last = Cursor(shown[-1].at_us, shown[-1].code, shown[-1].epoch_id, shown[-1].seq) if more else None
        return AlarmPage(alarms, last)

    def _renumber(
        self, connection: Connection, recording: Recording, recorded: Recorded, clashes: list[Clash]
    ) -> tuple[Recorded, list[Clash], dict[tuple[int, UUID], int]]:
        """Store events whose numbers are taken under other ones; return all that is recorded, and what is not."""
        moved = Recording(recording.received_us, events=renumbered(clashes))
        numbers = self._epoch_numbers(connection, moved)
        if self.database.is_sqlite:
            more, left = _insert_events(connection, moved, numbers)
        else:
            more, left = arrivals.store(connection, moved, numbers, arrivals.hold(connection, numbers.values()))
        fresh = tuple(moved.events) if more.fresh is None else more.fresh
        whole = Recorded(
            recorded.stored + more.stored,
            recorded.duplicates + more.duplicates,
            len(left),
            (*(recorded.fresh or ()), *fresh),
            clashed=tuple(row for row, _ in clashes),
        )
        return whole, left, numbers

    def _epoch_numbers(self, connection: Connection, recording: Recording) -> dict[tuple[int, UUID], int]:
        keys = {key for rows in (recording.events, recording.gaps) for key, _ in groupby(rows, _of_epoch)}
        return {key: self._epochs.get(key) or epoch_number(connection, *key) for key in sorted(keys)}

    @contextmanager
    def _months_may_be_gone(self) -> Iterator[None]:
        """Ask for another try where the table of a month was dropped since it was last seen."""
        try:
            yield
        except IntegrityError as error:
            if getattr(error.orig, "sqlstate", None) != _NO_PARTITION:
                raise
            self._months.forget()
            raise Unavailable("The table of a month was dropped at this very moment; it is made again.") from error


def _gap_record(row: Row[Any]) -> GapRecord:
    return GapRecord(moment(row.first_us), moment(row.last_us), row.first_seq, row.last_seq, row.reason)


def _insert_events(
    connection: Connection, recording: Recording, numbers: dict[tuple[int, UUID], int]
) -> tuple[Recorded, list[Clash]]:
    if not recording.events:
        return Recorded(0, 0, 0), []
    received = recording.received_us
    rows = [
        (number, seq, machine, code, at_us, received, flag)
        for key, group in groupby(recording.events, _of_epoch)
        for number in (numbers[key],)
        for machine, _, seq, code, at_us, flag in group
    ]
    stored = insert_rows(connection, events, _EVENT_COLUMNS, rows)
    if stored == len(rows):
        return Recorded(stored, 0, 0), []
    clashes, fresh = known_before(connection, recording, numbers)
    duplicates = len(rows) - stored - len(clashes)
    return Recorded(stored, duplicates, len(clashes), fresh if stored else ()), clashes


def _release(connection: Connection, released: set[int]) -> None:
    if not released:
        return
    chosen = quarantine.c.id.in_(released)
    connection.execute(select(quarantine.c.id).where(chosen).order_by(quarantine.c.id).with_for_update())
    connection.execute(delete(quarantine).where(chosen))


def _insert_gaps(connection: Connection, recording: Recording, numbers: dict[tuple[int, UUID], int]) -> None:
    for gap in recording.gaps:
        number = numbers[gap.machine, gap.epoch]
        row = (number, *gap[2:4], gap.machine, *gap[4:], recording.received_us)
        insert_rows(connection, gaps, _GAP_COLUMNS, [row], on_conflict=_A_GAP_GROWS)


def _insert_quarantined(connection: Connection, rows: list[Quarantined], received_us: int) -> None:
    if rows:
        values = [
            (
                row.machine,
                row.topic,
                row.reason,
                row.detail,
                row.body,
                sha256(row.body).hexdigest(),
                received_us,
            )
            for row in sorted(rows, key=_of_quarantine)
        ]
        insert_rows(connection, quarantine, _QUARANTINE_COLUMNS, values)
