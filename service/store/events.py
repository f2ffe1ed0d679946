"""Events: committed once whatever is resent, read by time, shown in pages."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
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

from forecasting.series import AlarmSeries
from service.core.evidence import Evidence
from service.core.history import AlarmPage, Cursor, GapRecord, PageQuery, StoredAlarm
from service.core.machine import Machine
from service.core.recording import (
    FROM_THE_FUTURE,
    TOO_OLD,
    EventRow,
    Quarantined,
    Recorded,
    Recording,
)
from service.store.dialect import insert_rows
from service.store.engine import Database
from service.store.evidence import evidence
from service.store.late import note_late
from service.store.machines import epoch_number, record_knocks, record_signs_of_life
from service.store.tables import agents, epochs, events, gaps, machines, quarantine
from wire.identity import MachineId
from wire.micros import micros, moment
from wire.moment import isoformat
from wire.topics import Channel, topic

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

    def commit(self, recording: Recording) -> Recorded:
        """Write all that a recording holds in one transaction; a repeated event changes nothing."""
        with self.database.write() as connection:
            numbers = self._epoch_numbers(connection, recording)
            if recording.released:
                connection.execute(delete(quarantine).where(quarantine.c.id.in_(recording.released)))
            recorded, conflicts = _insert_events(connection, recording, numbers)
            _insert_gaps(connection, recording, numbers)
            note_late(connection, recording, stored=recorded.stored)
            _insert_quarantined(connection, [*recording.quarantined, *conflicts], recording.received_us)
            record_signs_of_life(connection, recording.told.items())
            _note_heard(connection, recording)
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

    def _epoch_numbers(self, connection: Connection, recording: Recording) -> dict[tuple[int, UUID], int]:
        keys = {key for rows in (recording.events, recording.gaps) for key, _ in groupby(rows, _of_epoch)}
        return {key: self._epochs.get(key) or epoch_number(connection, *key) for key in keys}


def _gap_record(row: Row[Any]) -> GapRecord:
    return GapRecord(moment(row.first_us), moment(row.last_us), row.first_seq, row.last_seq, row.reason)


def _insert_events(
    connection: Connection, recording: Recording, numbers: dict[tuple[int, UUID], int]
) -> tuple[Recorded, list[Quarantined]]:
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
    conflicts, fresh = _known_before(connection, recording, numbers)
    duplicates = len(rows) - stored - len(conflicts)
    return Recorded(stored, duplicates, len(conflicts), fresh if stored else ()), conflicts


def _known_before(
    connection: Connection, recording: Recording, numbers: dict[tuple[int, UUID], int]
) -> tuple[list[Quarantined], tuple[EventRow, ...]]:
    """Return the rows whose identity is taken by an event with another body, and those that are new."""
    by_epoch: dict[int, list[EventRow]] = defaultdict(list)
    for row in recording.events:
        by_epoch[numbers[row.machine, row.epoch]].append(row)
    conflicts: list[tuple[EventRow, tuple[int, int]]] = []
    fresh: dict[tuple[int, int], EventRow] = {}  # by identity: a recording may hold an event twice
    for epoch_id, group in by_epoch.items():
        seqs = [row.seq for row in group]
        query = select(events.c.seq, events.c.code, events.c.at_us, events.c.received_us).where(
            events.c.epoch_id == epoch_id, events.c.seq >= min(seqs), events.c.seq <= max(seqs)
        )
        kept = {seq: (code, at_us, received_us) for seq, code, at_us, received_us in connection.execute(query)}
        for row in group:
            code, at_us, received_us = kept[row.seq]
            if (code, at_us) != (row.code, row.at_us):
                conflicts.append((row, (code, at_us)))
            elif received_us == recording.received_us:
                fresh[epoch_id, row.seq] = row
    names = _names(connection, {row.machine for row, _ in conflicts})
    return [_conflict(names[row.machine], row, kept) for row, kept in conflicts], tuple(fresh.values())


def _names(connection: Connection, rows: set[int]) -> dict[int, MachineId]:
    query = select(machines.c.id, machines.c.site, machines.c.machine).where(machines.c.id.in_(rows))
    return {row: MachineId(site, machine) for row, site, machine in connection.execute(query)} if rows else {}


def _conflict(machine: MachineId, row: EventRow, kept: tuple[int, int]) -> Quarantined:
    event = f'{{"seq":{row.seq},"code":{row.code},"at":"{isoformat(moment(row.at_us))}"}}'
    body = f'{{"epoch":"{row.epoch}","events":[{event}]}}'
    detail = f"event {row.seq} is stored already with code {kept[0]} at {moment(kept[1]).isoformat()}"
    # Its own topic: two machines may contradict themselves with the same words, and neither may hide the other.
    return Quarantined(row.machine, topic(machine, Channel.EVENTS), "conflict", detail, body.encode())


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
            for row in rows
        ]
        insert_rows(connection, quarantine, _QUARANTINE_COLUMNS, values)


def _note_heard(connection: Connection, recording: Recording) -> None:
    """Events are a sign of life too, but once an agent has told its state, only a state says it is online."""
    at = recording.received_us
    rows = [(machine, True, at, at) for machine in recording.heard - recording.told.keys()]
    if rows:
        heard = "(machine_id) DO UPDATE SET heard_us = excluded.heard_us"
        columns = ("machine_id", "online", "heard_us", "since_us")
        insert_rows(connection, agents, columns, rows, on_conflict=heard)
