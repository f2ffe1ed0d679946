"""Changes between processes: merged, and split into messages that PostgreSQL takes."""

import json

import pytest

from service.messaging.bus import (
    AlarmEvent,
    AlarmsRaised,
    ChampionPromoted,
    Change,
    EventsStored,
    HistoryLoaded,
    JobsChanged,
    NotificationsChanged,
    PermissionsChanged,
    ResourceChanged,
    SuppressionChanged,
)
from service.messaging.change_codec import ChangeBatch, from_body, to_body
from tests.service.conftest import FILLER
from wire.identity import MachineId

LONGEST = MachineId("s" * 63, "m" * 63)
MAX_BYTES = 8000 - 100  # PostgreSQL's limit without the sender


def test_every_message_is_small_enough_for_the_longest_names() -> None:
    machines = frozenset(MachineId("s" * 63, f"{number:063}") for number in range(300))
    batch = ChangeBatch()
    batch.add(EventsStored(machines, machines))
    batch.add(AlarmsRaised((AlarmEvent(LONGEST, 2**52, 2**31 - 1),) * 1000, missed=5))
    bodies = [to_body(change) for change in batch.take()]
    assert max(len(json.dumps(body, separators=(",", ":"))) for body in bodies) < MAX_BYTES
    changes = [from_body(body) for body in bodies]
    stored = [change for change in changes if isinstance(change, EventsStored)]
    assert frozenset().union(*(change.machines for change in stored)) == machines
    assert frozenset().union(*(change.late for change in stored)) == machines
    raised = [change for change in changes if isinstance(change, AlarmsRaised)]
    assert sum(len(change.alarms) for change in raised) == 400
    assert sum(change.missed for change in raised) == 605


def test_stored_events_are_merged_and_other_changes_come_first() -> None:
    batch = ChangeBatch()
    for _ in range(100):
        batch.add(EventsStored(frozenset({FILLER})))
    batch.add(EventsStored(late=frozenset({FILLER})))
    alarm = AlarmEvent(FILLER, 7, 139)
    batch.add(AlarmsRaised((alarm,)))
    batch.add(PermissionsChanged())
    assert batch.take() == [
        PermissionsChanged(),
        EventsStored(frozenset({FILLER})),
        EventsStored(late=frozenset({FILLER})),
        AlarmsRaised((alarm,)),
    ]
    assert batch.take() == []


def test_alarms_beyond_the_queue_are_dropped_and_counted() -> None:
    batch = ChangeBatch()
    for number in range(3):
        batch.add(AlarmsRaised(tuple(AlarmEvent(FILLER, number, code) for code in range(500))))
    *alarms, last = batch.take()
    assert isinstance(last, AlarmsRaised)
    assert last.missed == 1500 - 400
    first = alarms[0]
    assert isinstance(first, AlarmsRaised)
    assert first.alarms[0].at_us == 1, "the oldest were dropped"


@pytest.mark.parametrize(
    "change",
    [
        EventsStored(frozenset({FILLER}), frozenset({LONGEST})),
        HistoryLoaded(FILLER),
        ChampionPromoted(),
        SuppressionChanged("padova", None),
        SuppressionChanged("padova", "filler-1"),
        PermissionsChanged(),
        JobsChanged(),
        NotificationsChanged(),
        ResourceChanged(),
    ],
)
def test_a_change_is_the_same_after_encoding_and_decoding(change: Change) -> None:
    assert from_body(json.loads(json.dumps(to_body(change)))) == change


def test_alarms_are_the_same_after_encoding_and_decoding() -> None:
    decoded = from_body(json.loads(json.dumps(to_body(AlarmsRaised((AlarmEvent(FILLER, 7, 139),), missed=2)))))
    assert isinstance(decoded, AlarmsRaised)
    assert [(alarm.machine, alarm.at_us, alarm.code) for alarm in decoded.alarms] == [(FILLER, 7, 139)]
    assert decoded.missed == 2
