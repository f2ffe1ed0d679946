"""The telegraph: what has happened is told together, in messages that PostgreSQL takes."""

import json
from datetime import UTC, datetime

from service.database.event_row import IN_TIME, EventRow
from service.machines.models import Machine
from service.messaging.change_event import ChangeEvent, ChangeKind
from service.messaging.change_publisher import ChangePublisher, batch_events
from service.messaging.pubsub import AlarmEvent, EventBus
from tests.conftest import wait_until
from tests.service.conftest import EPOCH, FILLER
from wire.identity import MachineId

LONGEST = MachineId("s" * 63, "m" * 63)
MOST_BYTES = 8000 - 100  # what PostgreSQL takes, less what says who speaks


def test_every_message_is_small_enough_however_long_the_names() -> None:
    machines = [MachineId("s" * 63, f"{number:063}") for number in range(300)]
    alarms = [AlarmEvent(LONGEST, 2**52, 2**31 - 1)] * 1000
    told = batch_events(machines, machines, alarms, missed=5)
    assert max(len(json.dumps(one.body, separators=(",", ":"))) for one in told) < MOST_BYTES
    assert [name for one in told for name in one.body.get("machines", ())] == [str(one) for one in machines]
    assert sum(len(one.body.get("alarms", ())) for one in told) + told[-1].body["missed"] == 1005


def test_what_comes_together_is_told_together_and_alarms_with_it() -> None:
    sent: list[ChangeEvent] = []
    feed = EventBus(most_listeners=1)
    telegraph = ChangePublisher(sent.extend, feed)
    telegraph.start()
    for _ in range(100):
        telegraph.touched([FILLER])
    machine = Machine(1, FILLER, "Filler", "UTC", datetime.now(UTC))
    telegraph.late([machine])
    feed.publish_alarms([EventRow(1, EPOCH, 1, 139, 7, IN_TIME)], [machine])
    telegraph.publish(ChangeEvent(ChangeKind.PERMISSIONS_CHANGED))
    wait_until(lambda: len(sent) >= 4, "all is told")
    telegraph.stop()
    name = str(FILLER)
    assert [one.body for one in sent if one.kind is ChangeKind.EVENTS_STORED] == [
        {"machines": [name]},
        {"late": [name]},
        {"alarms": [[name, 7, 139]]},
    ]


def test_what_cannot_be_sent_is_told_as_a_trouble_and_the_next_is_tried() -> None:
    tries: list[ChangeEvent] = []

    def send(signals: list[ChangeEvent]) -> None:
        tries.extend(signals)
        if len(tries) == 1:
            raise RuntimeError("the wire is cut")

    telegraph = ChangePublisher(send, EventBus(most_listeners=1))
    telegraph.start()
    telegraph.touched([FILLER])
    wait_until(lambda: telegraph.complaint, "it complains")
    telegraph.touched([LONGEST])
    wait_until(lambda: len(tries) == 2 and telegraph.error is None, "it works again")
    telegraph.stop()
