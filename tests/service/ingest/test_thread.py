"""The ingester: no message is left without an end, whatever the store or our own code does."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import select

from service.app.stores import Stores
from service.database.tables import quarantine
from service.errors import Unavailable
from service.ingest.inbox import BatchLimits
from service.ingest.service import TimePolicy
from service.ingest.thread import Ingester
from service.machines.events import EventWrite, WriteResult
from service.machines.models import Machine
from service.machines.store import MachineCache
from service.messaging.bus import ChangeBus
from service.messaging.mqtt_client import MqttMessage
from tests.conftest import wait_until
from tests.service.conftest import EPOCH, NOW
from tests.support.ingest import RecordingLink
from wire.clock import PlantClock
from wire.codec import MAX_BYTES, encode
from wire.identity import MachineId
from wire.state import AgentState
from wire.timestamps import isoformat

TOPIC = "alarmcast/v1/padova/filler-1/events"


class BreakingStore:
    """The real store, but for the codes that break it and the times that it is away."""

    def __init__(self, stores: Stores, *, breaks_on: int = -1, away: int = 0) -> None:
        self._stores, self._breaks_on, self._away = stores, breaks_on, away

    def commit(self, recording: EventWrite) -> WriteResult:
        if any(row.code == self._breaks_on for row in recording.events):
            raise OverflowError("no such integer")
        if self._away:
            self._away -= 1
            raise Unavailable("The database is away.")
        return self._stores.events.commit(recording)


class AwayAtFirst(MachineCache):
    """A registry whose store does not answer at first."""

    failures = 3

    def find(self, machine: MachineId) -> Machine | None:
        if self.failures:
            self.failures -= 1
            raise Unavailable("The database is away.")
        return super().find(machine)


def event(mid: int, code: int) -> MqttMessage:
    at = isoformat(NOW)
    body = f'{{"epoch":"{EPOCH}","events":[{{"seq":{mid},"code":{code},"at":"{at}"}}]}}'
    return MqttMessage(0, mid, 1, TOPIC, body.encode(), retained=False)


def ingest(
    stores: Stores, registry: MachineCache, recorder: BreakingStore, *deliveries: MqttMessage
) -> RecordingLink:
    ingester = Ingester(
        registry=registry,
        recorder=recorder,
        clock=PlantClock(NOW, NOW, 1.0, wall=NOW.timestamp),
        policy=TimePolicy(),
        limits=BatchLimits(),
        bus=ChangeBus(),
    )
    link = RecordingLink()
    for delivery in deliveries:
        ingester.on_message(delivery)
    ingester.start(link)  # type: ignore[arg-type]
    wait_until(lambda: len(link.acked) == len(deliveries), "every message is acked to the broker")
    ingester.stop()
    assert ingester.last_error is None
    assert stores
    return link


@pytest.mark.usefixtures("filler")
def test_only_what_was_raised_since_the_agent_is_connected_counts_as_lag(stores: Stores) -> None:
    def told(mid: int, age: timedelta) -> MqttMessage:
        body = f'{{"epoch":"{EPOCH}","events":[{{"seq":{mid},"code":5,"at":"{isoformat(NOW - age)}"}}]}}'
        return MqttMessage(0, mid, 1, TOPIC, body.encode(), retained=False)

    state = AgentState(
        online=True, agent="1", epoch=EPOCH, spooled=2, at=NOW, connected_at=NOW - timedelta(minutes=30)
    )
    minutes = [timedelta(minutes=minute) for minute in (1, 20, 40, 60 * 24 * 30)]
    registry, store = MachineCache(stores.machines), BreakingStore(stores)
    for first, median, live in ((None, 60.0, 1), (state, 60.0, 2)):
        ingester = Ingester(
            registry=registry,
            recorder=store,
            clock=PlantClock(NOW, NOW, 1.0, wall=NOW.timestamp),
            policy=TimePolicy(),
            limits=BatchLimits(),
            bus=ChangeBus(),
        )
        seqs = range(10, 14) if first else range(20, 24)
        deliveries = [told(seq, age) for seq, age in zip(seqs, minutes, strict=True)]
        if first:
            deliveries.insert(
                0, MqttMessage(0, 1, 1, TOPIC.replace("events", "state"), encode(first), retained=False)
            )
        link = RecordingLink()
        for delivery in deliveries:
            ingester.on_message(delivery)
        ingester.start(link)  # type: ignore[arg-type]
        wait_until(lambda link=link, sent=deliveries: len(link.acked) == len(sent), "all is committed")  # type: ignore[misc]
        ingester.stop()
        lag = ingester.pace.lag()
        assert (lag.median, lag.events, ingester.pace.backfilled) == (median, live, 4 - live)


def reasons(stores: Stores) -> list[str]:
    with stores.database.read() as connection:
        return list(connection.execute(select(quarantine.c.reason)).scalars())


@pytest.mark.usefixtures("filler")
def test_a_message_that_breaks_us_is_quarantined_alone_and_the_rest_is_stored(
    stores: Stores, filler: Machine
) -> None:
    store = BreakingStore(stores, breaks_on=666)
    link = ingest(stores, MachineCache(stores.machines), store, event(1, 5), event(2, 666), event(3, 7))
    assert sorted(link.acked) == [1, 2, 3]
    assert stores.events.series(filler, NOW.replace(hour=0), NOW.replace(hour=23)).codes.tolist() == [5, 7]
    assert reasons(stores) == ["internal"]


def test_a_store_that_is_away_is_waited_for(stores: Stores, filler: Machine) -> None:
    ingest(stores, MachineCache(stores.machines), BreakingStore(stores, away=2), event(1, 5))
    assert stores.events.first_at(filler) == NOW


def test_not_knowing_who_is_registered_is_waited_out_too(stores: Stores, filler: Machine) -> None:
    ingest(stores, AwayAtFirst(stores.machines), BreakingStore(stores), event(1, 5), event(2, 6))
    assert stores.events.first_at(filler) == NOW
    assert stores.machines.unregistered() == []


@pytest.mark.usefixtures("filler")
def test_acks_of_scattered_numbers_are_split_below_the_limit_of_a_message(stores: Stores) -> None:
    top, at = 2**63 - 1, isoformat(NOW)
    numbers = [[top - 2 * (500 * part + event) for event in range(500)] for part in range(4)]
    messages = [
        MqttMessage(0, mid, 1, TOPIC, json.dumps({"epoch": str(EPOCH), "events": events}).encode(), retained=False)
        for mid, events in enumerate(
            ([{"seq": seq, "code": 1, "at": at} for seq in part] for part in numbers), start=1
        )
    ]
    link = ingest(stores, MachineCache(stores.machines), BreakingStore(stores), *messages)
    assert max(len(payload) for payload in link.payloads) <= MAX_BYTES
    acked = {seq for payload in link.payloads for first, seq in json.loads(payload)["seqs"] if first == seq}
    assert acked == {seq for part in numbers for seq in part}
