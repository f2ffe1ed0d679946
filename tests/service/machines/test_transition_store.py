"""Stored clears and stops, on SQLite and on PostgreSQL alike."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from service.database.engine import Database
from service.database.event_row import TOO_OLD, EventRow, flag_of
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite
from service.machines.models import Machine
from service.machines.transition_store import TransitionStore
from tests.service.conftest import enrolled
from wire.events import TransitionKind
from wire.identity import MachineId
from wire.timestamps import to_us

AT, HOUR = datetime(2026, 11, 16, tzinfo=UTC), timedelta(hours=1)
CLEARED, ACKNOWLEDGED, STOPPED = TransitionKind.CLEARED, TransitionKind.ACKNOWLEDGED, TransitionKind.STOPPED


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), MachineId("padova", "filler-1"))


def store(database: Database, machine: Machine, epoch: UUID, *rows: tuple[float, int, int]) -> None:
    """Store rows of hour, code and flag."""
    events = [
        EventRow(machine.row_id, epoch, seq, code, to_us(AT + hours * HOUR), flag)
        for seq, (hours, code, flag) in enumerate(rows, start=1)
    ]
    EventStore(database).commit(EventWrite(to_us(AT), events=events))


def test_transitions_are_read_by_kind_in_time_order(database: Database, machine: Machine) -> None:
    cleared = flag_of(CLEARED)
    too_old = flag_of(CLEARED, TOO_OLD)
    rows = [(3, 7, cleared), (1, 5, cleared), (2, 6, 0), (2, 6, flag_of(ACKNOWLEDGED)), (4, 8, flag_of(STOPPED))]
    store(database, machine, uuid4(), *rows, (2, 9, too_old))
    other = enrolled(EnrolmentStore(database), MachineId("padova", "filler-2"))
    store(database, other, uuid4(), (1, 1, cleared))
    found = TransitionStore(database).series(machine, AT, AT + 5 * HOUR, 100)
    assert {kind: series.codes.tolist() for kind, series in found.items()} == {
        CLEARED: [5, 7],
        STOPPED: [8],
        TransitionKind.RESUMED: [],
    }
    newest = TransitionStore(database).series(machine, AT, AT + 5 * HOUR, 2)
    assert (newest[CLEARED].codes.tolist(), newest[STOPPED].codes.tolist()) == ([7], [8])


def test_clears_are_known_from_their_spool_on_but_at_most_a_day_before_the_first(
    database: Database, machine: Machine
) -> None:
    transitions = TransitionStore(database)
    store(database, machine, uuid4(), (-50, 5, 0))
    assert transitions.known_since(machine) is None
    store(database, machine, uuid4(), (0, 5, 0), (30, 5, flag_of(CLEARED)))
    assert transitions.known_since(machine) == AT + 6 * HOUR
    store(database, machine, uuid4(), (18, 5, 0), (20, 5, flag_of(CLEARED)))
    assert transitions.known_since(machine) == AT + 18 * HOUR
