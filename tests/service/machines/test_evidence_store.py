"""Evidence of many machines at once: the same as machine by machine, from the index alone."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import Connection, text

from forecasting.series import AlarmSeries
from service.database.engine import Database
from service.database.event_row import FROM_THE_FUTURE, IN_TIME, EventRow
from service.learning.enrolment_store import EnrolmentStore
from service.machines import evidence_store
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, GapRow
from service.machines.evidence_store import WINDOWS
from service.machines.models import Machine
from tests.service.conftest import enrolled
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def machines(database: Database) -> list[Machine]:
    store = EnrolmentStore(database)
    return [enrolled(store, MachineId("padova", f"filler-{number}")) for number in range(4)]


def commit(store: EventStore, machine: Machine, hours: list[int], *, flag: int = IN_TIME) -> None:
    epoch = uuid4()
    rows = [
        EventRow(machine.row_id, epoch, seq, 100 + seq % 3, to_us(AT + hour * HOUR), flag)
        for seq, hour in enumerate(hours, start=1)
    ]
    gap = GapRow(machine.row_id, epoch, 900, 901, to_us(AT + 2 * HOUR), to_us(AT + 3 * HOUR), "spool_full")
    store.commit(EventWrite(to_us(AT), events=rows, gaps=[gap]))


def test_evidence_of_many_machines_is_that_of_each_in_the_order_asked_for(
    database: Database, machines: list[Machine]
) -> None:
    store = EventStore(database)
    commit(store, machines[0], [0, 1, 1, 5, 9])
    commit(store, machines[2], [20, 3, 2])
    commit(store, machines[2], [4], flag=FROM_THE_FUTURE)
    asked = [machines[2], machines[1], machines[0]]
    found = store.evidence(asked, AT + HOUR, AT + 6 * HOUR)
    for machine, one in zip(asked, found, strict=True):
        alone = store.series(machine, AT + HOUR, AT + 6 * HOUR)
        assert np.array_equal(one.series.times, alone.times)
        assert np.array_equal(one.series.codes, alone.codes)
        assert list(one.gaps) == store.gaps(machine, AT + HOUR, AT + 6 * HOUR)
        assert (one.first_at, one.last_at) == (store.first_at(machine), store.last_at(machine))
    assert [len(one.series) for one in found] == [2, 0, 3]


def test_of_a_machine_with_very_many_events_only_the_newest_are_used(
    database: Database, machines: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_store, "MAX_EVENTS", 4)
    store, busy, other = EventStore(database), machines[0], machines[1]
    commit(store, busy, list(range(10)))
    commit(store, other, [1, 2])
    reads: list[int] = []
    read_newest = evidence_store.newest

    def counted(connection: Connection, machine: int, start_us: int, end_us: int, most: int) -> AlarmSeries:
        reads.append(machine)
        return read_newest(connection, machine, start_us, end_us, most)

    monkeypatch.setattr(evidence_store, "newest", counted)
    for _ in range(2):  # the second time it is known to be busy
        its, others = store.evidence([busy, other], AT, AT + 20 * HOUR)
        assert its.series.times.tolist() == [to_us(AT + hour * HOUR) for hour in (6, 7, 8, 9)]
        assert (its.first_at, its.last_at) == (AT + 6 * HOUR, AT + 9 * HOUR), "as if its history began there"
        assert len(others.series) == 2
    assert reads == [busy.row_id], "all of its events are read once only"
    store.evidence([busy], AT, AT)
    store.evidence([busy], AT, AT + 20 * HOUR)
    assert reads == [busy.row_id] * 2, "an empty span does not make it quiet"
    (late,) = store.evidence([busy], AT + 8 * HOUR, AT + 28 * HOUR)
    assert (len(late.series), late.first_at) == (2, AT)
    store.evidence([busy], AT + 8 * HOUR, AT + 28 * HOUR)
    assert len(reads) == 3, "it is quiet again"


def test_windows_are_read_from_the_index_alone(database: Database, machines: list[Machine]) -> None:
    if not database.is_sqlite:
        return  # PostgreSQL rightly reads so small a table whole
    rows = ", ".join(str(machine.row_id) for machine in machines)
    query = WINDOWS.replace(":machines", f"({rows})")
    with database.read() as connection:
        plan = str(connection.execute(text(f"EXPLAIN QUERY PLAN {query}"), {"start": 0, "end": 1}).fetchall())
    assert "COVERING INDEX ix_events_window (machine_id=? AND at_us>? AND at_us<?)" in plan
    assert "TEMP B-TREE" not in plan
