"""Events: committed once whatever is resent, read by time, shown in pages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    TextClause,
    delete,
    select,
    text,
    tuple_,
)
from sqlalchemy.exc import IntegrityError

from forecasting.series import AlarmSeries
from service.database.dialect import insert_rows, integers
from service.database.engine import Database
from service.database.event_row import flags_in, kind_of, time_flag_of
from service.database.partitions import Months
from service.database.tables import epochs, events, quarantine
from service.errors import Unavailable
from service.machines import postgres_event_store as arrivals
from service.machines.catalogue_store import describe_codes
from service.machines.epoch_store import Clash, conflicts, give_numbers, known_before, known_numbers, renumbered
from service.machines.events import (
    AlarmPage,
    Cursor,
    EventWrite,
    Evidence,
    GapRecord,
    PageQuery,
    StoredAlarm,
    WriteResult,
)
from service.machines.evidence_store import evidence, newest
from service.machines.gap_store import gaps_between, insert_gaps, newest_gaps
from service.machines.limits_store import NO_MACHINE, note_excess
from service.machines.models import ExcessKind, Machine, MachineLimits
from service.machines.quarantine_store import insert_quarantined
from service.machines.score_invalidation_store import invalidate_scores
from service.machines.store import (
    absent,
    active_machines,
    record_duplicate_agents,
    record_unregistered,
    update_last_seen,
)
from wire.rest.gaps import GapView
from wire.timestamps import from_us, to_us

_EVENT_COLUMNS = ("epoch_id", "seq", "machine_id", "code", "at_us", "received_us", "flag")
# Rows of one batch stand together, so grouping them hashes an epoch once a batch instead of once an event.
_of_epoch = itemgetter(0, 1)
_NO_PARTITION = "23514"  # what PostgreSQL says of a row that no table takes
# Written with the literal the partial index names, or neither database would use it.
_WINDOW = text(
    "SELECT at_us, code FROM events WHERE machine_id = :machine AND at_us >= :start AND at_us < :end AND flag = 0"
    " ORDER BY at_us, code"
)
_COUNT = text(
    "SELECT count(*) FROM events WHERE machine_id = :machine AND at_us >= :start AND at_us < :end AND flag = 0"
)
_FIRST = text("SELECT min(at_us) FROM events WHERE machine_id = :machine AND flag = 0")
_FLAGGED = text(
    f"SELECT count(*) FROM events WHERE machine_id = :machine AND {flags_in(None, flagged=True)}"  # noqa: S608 - ours
)
_SPANS = text(
    "SELECT min(at_us), max(at_us) FROM events WHERE machine_id = :machine AND flag = 0 GROUP BY epoch_id"
)
_LAST = text("SELECT max(at_us) FROM events WHERE machine_id = :machine AND flag = 0")


@dataclass
class EventStore:
    """The event log of the whole fleet; ``limits`` is how much one machine may keep in it."""

    database: Database
    limits: MachineLimits = field(default_factory=MachineLimits)
    _months: Months = field(init=False)
    _busy: dict[int, int] = field(default_factory=dict, init=False)  # machines with very many events

    def __post_init__(self) -> None:
        self._months = Months(self.database)

    def commit(self, recording: EventWrite) -> WriteResult:
        """Write all that a recording holds in one transaction; a repeated event changes nothing.

        Machines that were retired or erased meanwhile are left out; that is decided inside the transaction.
        """
        if recording.codes:
            self._describe(recording)
        self._months.prepare(recording.events)
        with self._months_may_be_gone(), self.database.write() as connection:
            gone = absent(connection, recording.machines)
            if recording.continued:
                lost = recording.continued - known_numbers(connection, recording.continued).keys()
                gone |= {machine for machine, _ in lost}
            if not gone:
                return self._store(connection, recording)
            kept = recording.without_machines(gone)
            return replace(_of_part(self._store(connection, kept), kept), absent=frozenset(gone))

    def _describe(self, recording: EventWrite) -> None:
        """Add described codes to the catalogue, in a transaction of their own: nothing else is locked by it."""
        with self.database.write() as connection:
            active = active_machines(connection, {machine for machine, _ in recording.codes})
            codes = [(machine, code) for machine, code in recording.codes if machine in active]
            left_out = describe_codes(connection, codes, most=self.limits.codes)
            note_excess(connection, left_out, recording.received_us)

    def _store(self, connection: Connection, recording: EventWrite) -> WriteResult:
        """Write a recording; each step touches its rows in one order, so that commits never wait in a circle."""
        keys = {key for rows in (recording.events, recording.gaps) for key, _ in groupby(rows, _of_epoch)}
        numbers = give_numbers(connection, keys, most=self.limits.epochs)
        refused = keys - numbers.keys()
        if refused:
            recording = recording.without_epochs(refused)
        held = None if self.database.is_sqlite else arrivals.lock_epochs(connection, numbers.values())
        _release(connection, recording.released_quarantine)
        if held is None:
            recorded, clashes = _insert_events(connection, recording, numbers)
        else:
            recorded, clashes = arrivals.insert_new(connection, recording, numbers, held)
        if clashes and recording.renumber_clashes:
            recorded, clashes = self._renumber(connection, recording, recorded, clashes)
        received_us = recording.received_us
        left_out = Counter((machine, ExcessKind.EPOCHS) for machine, _ in refused)
        left_out += insert_gaps(connection, recording.gaps, numbers, received_us, most=self.limits.gaps)
        invalidate_scores(connection, recording, stored=recorded.stored)
        left_out += insert_quarantined(
            connection, [*recording.quarantined, *conflicts(connection, clashes)], received_us, self.limits
        )
        update_last_seen(connection, recording.agent_states, recording.seen_machines, received_us)
        record_duplicate_agents(connection, recording.duplicate_agents)
        unlisted = record_unregistered(
            connection, recording.unregistered, received_us, most=self.limits.unenrolled
        )
        if unlisted:
            left_out[NO_MACHINE, ExcessKind.UNENROLLED] += unlisted
        note_excess(connection, left_out, received_us)
        return replace(_of_part(recorded, recording), refused=frozenset(refused)) if refused else recorded

    def series(self, machine: Machine, start: datetime, end: datetime) -> AlarmSeries:
        """Return a machine's trustworthy alarms in ``[start, end)``, in an order that arrival cannot change."""
        bounds = {"machine": machine.row_id, "start": to_us(start), "end": to_us(end)}
        with self.database.read() as connection:
            table = integers(connection, _WINDOW, bounds, 2)
        return AlarmSeries(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))

    def newest(self, machine: Machine, start: datetime, end: datetime, most: int) -> AlarmSeries:
        """Return the newest ``most`` alarms of such a series, in the same order."""
        with self.database.read() as connection:
            return newest(connection, machine.row_id, to_us(start), to_us(end), most)

    def count(self, machine: Machine, start: datetime, end: datetime) -> int:
        """Return how many alarms such a series has."""
        bounds = {"machine": machine.row_id, "start": to_us(start), "end": to_us(end)}
        with self.database.read() as connection:
            return int(connection.execute(_COUNT, bounds).scalar_one())

    def evidence(self, machines: Sequence[Machine], start: datetime, end: datetime) -> list[Evidence]:
        """Return what forecasts of many machines are made from, in their order, with a few statements for all."""
        with self.database.read() as connection:
            return evidence(connection, machines, to_us(start), to_us(end), self._busy)

    def first_at(self, machine: Machine) -> datetime | None:
        """Return when the machine's trustworthy history begins."""
        return self._moment(_FIRST, machine)

    def last_at(self, machine: Machine) -> datetime | None:
        """Return when the machine's trustworthy history ends."""
        return self._moment(_LAST, machine)

    def _moment(self, query: TextClause, machine: Machine) -> datetime | None:
        with self.database.read() as connection:
            found = connection.execute(query, {"machine": machine.row_id}).scalar()
        return from_us(found) if found is not None else None

    def spans(self, machine: Machine) -> list[tuple[datetime, datetime]]:
        """Return when each epoch, a spool or a history file, has its first and its last trustworthy alarm."""
        with self.database.read() as connection:
            rows = connection.execute(_SPANS, {"machine": machine.row_id})
            return [(from_us(first), from_us(last)) for first, last in rows]

    def flagged(self, machine: Machine) -> int:
        """Return how many of a machine's alarms are kept out of windows for their time."""
        with self.database.read() as connection:
            return int(connection.execute(_FLAGGED, {"machine": machine.row_id}).scalar_one())

    def heard_since(self, machine: Machine, epoch: UUID, since: datetime) -> bool:
        """Say whether an event of this spool was received at or after a moment."""
        query = (
            select(events.c.seq)
            .join(epochs, epochs.c.id == events.c.epoch_id)
            .where(
                epochs.c.machine_id == machine.row_id,
                epochs.c.epoch == epoch,
                events.c.received_us >= to_us(since),
            )
        )
        with self.database.read() as connection:
            return connection.execute(query.limit(1)).scalar() is not None

    def gaps(self, machine: Machine, start: datetime, end: datetime) -> list[GapRecord]:
        """Return the gaps that touch ``[start, end)``, in time order."""
        with self.database.read() as connection:
            return gaps_between(connection, machine, to_us(start), to_us(end))

    def newest_gaps(self, machine: Machine, start: datetime, end: datetime, most: int) -> list[GapView]:
        """Return the newest gaps as above, in time order, each with how many of its numbers are really missing.

        An agent may drop what was already on its way; such events arrive, and the gap is smaller than it says.
        """
        with self.database.read() as connection:
            return newest_gaps(connection, machine, to_us(start), to_us(end), most)

    def page(self, machine: Machine, query: PageQuery) -> AlarmPage:
        """Return a page of a machine's alarms, newest first."""
        place = (events.c.at_us, events.c.code, events.c.epoch_id, events.c.seq)
        wanted: list[ColumnElement[bool]] = [events.c.machine_id == machine.row_id]
        if query.since is not None:
            wanted.append(events.c.at_us >= to_us(query.since))
        if query.until is not None:
            wanted.append(events.c.at_us < to_us(query.until))
        if query.code is not None:
            wanted.append(events.c.code == query.code)
        if query.before is not None:
            wanted.append(tuple_(*place) < tuple_(*query.before))
        kind = text(flags_in(query.kind, flagged=query.flagged))
        newest_first = [part.desc() for part in place]
        statement = select(events).where(*wanted, kind).order_by(*newest_first).limit(query.limit + 1)
        with self.database.read() as connection:
            rows = connection.execute(statement).fetchall()
        shown, more = rows[: query.limit], len(rows) > query.limit
        alarms = [
            StoredAlarm(
                from_us(row.at_us), row.code, from_us(row.received_us), time_flag_of(row.flag), kind_of(row.flag)
            )
            for row in shown
        ]
        last = Cursor(shown[-1].at_us, shown[-1].code, shown[-1].epoch_id, shown[-1].seq) if more else None
        return AlarmPage(alarms, last)

    def _renumber(
        self, connection: Connection, recording: EventWrite, recorded: WriteResult, clashes: list[Clash]
    ) -> tuple[WriteResult, list[Clash]]:
        """Store events whose numbers are taken under other ones; return all that is recorded, and what is not."""
        moved = dict(zip(renumbered(clashes), clashes, strict=True))
        numbers = give_numbers(connection, {_of_epoch(row) for row in moved}, most=self.limits.epochs)
        storable = EventWrite(recording.received_us, events=[row for row in moved if _of_epoch(row) in numbers])
        if self.database.is_sqlite:
            more, left = _insert_events(connection, storable, numbers)
        else:
            held = arrivals.lock_epochs(connection, numbers.values())
            more, left = arrivals.insert_new(connection, storable, numbers, held)
        left += [clash for row, clash in moved.items() if _of_epoch(row) not in numbers]
        fresh = tuple(storable.events) if more.new_events is None else more.new_events
        whole = WriteResult(
            recorded.stored + more.stored,
            recorded.duplicates + more.duplicates,
            len(left),
            (*(recorded.new_events or ()), *fresh),
            clashed=tuple(moved[row][0] for row in storable.events),
        )
        return whole, left

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


def _of_part(recorded: WriteResult, kept: EventWrite) -> WriteResult:
    """Return what became of a part of a recording, with its new events named: they are not all of the whole."""
    return recorded if recorded.new_events is not None else replace(recorded, new_events=tuple(kept.events))


def _insert_events(
    connection: Connection, recording: EventWrite, numbers: dict[tuple[int, UUID], int]
) -> tuple[WriteResult, list[Clash]]:
    if not recording.events:
        return WriteResult(0, 0, 0), []
    received = recording.received_us
    rows = [
        (number, seq, machine, code, at_us, received, flag)
        for key, group in groupby(recording.events, _of_epoch)
        for number in (numbers[key],)
        for machine, _, seq, code, at_us, flag in group
    ]
    stored = insert_rows(connection, events, _EVENT_COLUMNS, rows)
    if stored == len(rows):
        return WriteResult(stored, 0, 0), []
    clashes, fresh = known_before(connection, recording, numbers)
    duplicates = len(rows) - stored - len(clashes)
    return WriteResult(stored, duplicates, len(clashes), fresh if stored else ()), clashes


def _release(connection: Connection, released: set[int]) -> None:
    if not released:
        return
    chosen = quarantine.c.id.in_(released)
    connection.execute(select(quarantine.c.id).where(chosen).order_by(quarantine.c.id).with_for_update())
    connection.execute(delete(quarantine).where(chosen))
