"""The quarantine over REST: looked at in pages, by reason, whole, and replayed after a fix."""

import json
from datetime import timedelta

import pytest

from alarmcast import Conflict, NotFound, Rejected
from service.app.service import Service
from service.app.stores import Stores
from service.database.event_row import EventRow
from service.ingest.service import IncomingMessage, IngestBatch, TimePolicy, commit
from service.machines.events import EventWrite
from service.machines.models import Machine
from service.machines.store import MachineCache
from tests.service.conftest import EPOCH, NOW
from tests.support.api_client import Client
from tests.support.ingest import EVENTS, batch, event, take
from wire.rest.quarantine import ReplayView
from wire.timestamps import isoformat, to_us


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


@pytest.mark.usefixtures("filler")
def test_items_come_newest_first_in_pages_that_neither_skip_nor_repeat(stores: Stores, client: Client) -> None:
    take(stores, *(f"broken {number}".encode() for number in range(25)))
    assert len(client.quarantine.page(limit=10).items) == 10
    seen = [item.id for item in client.quarantine.items(limit=10)]
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == 25


@pytest.mark.usefixtures("filler")
def test_items_are_counted_and_found_by_reason_and_machine(stores: Stores, client: Client) -> None:
    take(stores, b"{", b"[]", batch(event(1, code=-1)))
    take(stores, b"{}", topic="alarmcast/v1/Padova/x/events")
    counts = {one.reason: one.items for one in client.quarantine.reasons()}
    assert counts == {"not_json": 1, "bad_shape": 1, "bad_code": 1, "topic": 1}
    assert [item.reason for item in client.quarantine.items(reason="bad_code")] == ["bad_code"]
    assert len(client.quarantine.page(machine="padova/filler-1").items) == 3
    with pytest.raises(Rejected):
        client.quarantine.page(machine="Padova")


@pytest.mark.usefixtures("filler")
def test_one_item_is_given_whole_text_or_not(stores: Stores, client: Client) -> None:
    take(stores, b"\xff\xfe{", b"{")
    found = (client.quarantine.get(item.id) for item in client.quarantine.items())
    text, binary = sorted(found, key=lambda one: one.text is None)  # what came at once is in no order
    assert (text.text, text.base64) == ("{", "ew==")
    assert (binary.text, binary.base64) == (None, "//57")
    with pytest.raises(NotFound):
        client.quarantine.get(999)


def test_an_event_that_is_corrected_is_stored_and_leaves_the_quarantine(
    stores: Stores, filler: Machine, client: Client
) -> None:
    take(stores, batch(event(1), event(2, code="139"), event(3)))
    (item,) = client.quarantine.items()
    body = client.quarantine.get(item.id).text
    assert body
    with pytest.raises(Conflict):
        client.quarantine.replay(item.id)
    assert len(client.quarantine.page().items) == 1, "what is refused again stays"
    answer = client.quarantine.replay(item.id, body=body.replace('"139"', "139"))
    assert answer == ReplayView(stored=1, known=0, refused=0)
    assert client.quarantine.page().items == []
    assert len(stores.events.series(filler, NOW - timedelta(hours=1), NOW)) == 3
    with pytest.raises(NotFound):
        client.quarantine.replay(item.id)


def test_after_a_fix_of_ours_all_of_a_reason_are_replayed_at_once(
    stores: Stores, filler: Machine, client: Client
) -> None:
    intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines))
    for seq in range(1, 6):
        intake.reject(IncomingMessage(EVENTS, batch(event(seq))), "internal", "a defect of ours")
    intake.reject(IncomingMessage(EVENTS, b"rubbish"), "internal", "a defect of ours")
    commit(intake, recorder=stores.events)
    assert client.quarantine.replay_all(reason="internal") == ReplayView(stored=5, known=0, refused=1)
    assert len(stores.events.series(filler, NOW - timedelta(hours=1), NOW)) == 5
    assert [item.size for item in client.quarantine.items()] == [7]


def test_a_conflict_that_an_earlier_version_quarantined_is_stored_when_it_is_replayed(
    stores: Stores, filler: Machine, client: Client
) -> None:
    take(stores, batch(event(1)))
    row = EventRow(filler.row_id, EPOCH, 1, 7, to_us(NOW - timedelta(minutes=1)), 0)
    stores.events.commit(EventWrite(to_us(NOW), events=[row]))
    (item,) = client.quarantine.items(reason="conflict")
    assert client.quarantine.replay(item.id) == ReplayView(stored=1, known=0, refused=0)
    assert client.quarantine.page().items == []
    assert len(stores.events.series(filler, NOW - timedelta(hours=1), NOW)) == 2


def test_of_a_message_that_is_partly_good_the_good_is_stored_and_the_bad_stays(
    stores: Stores, filler: Machine, client: Client
) -> None:
    intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines))
    intake.reject(IncomingMessage(EVENTS, batch(event(1), event(2, code=-1))), "internal", "a defect of ours")
    commit(intake, recorder=stores.events)
    (item,) = client.quarantine.items()
    assert client.quarantine.replay(item.id) == ReplayView(stored=1, known=0, refused=0)
    assert [one.reason for one in client.quarantine.items()] == ["bad_code"]
    assert len(stores.events.series(filler, NOW - timedelta(hours=1), NOW)) == 1


def test_gaps_say_how_many_events_are_really_missing(stores: Stores, client: Client, filler: Machine) -> None:
    gap = {"seqs": [1, 10], "first_at": isoformat(NOW), "last_at": isoformat(NOW), "reason": "spool_full"}
    take(stores, batch(event(3), event(4)), json.dumps({"epoch": str(EPOCH), "gaps": [gap]}).encode())
    page = client.machines.gaps(filler.id)
    assert [(one.first_seq, one.last_seq, one.dropped) for one in page.gaps] == [(1, 10, 8)]
    assert page.dropped == 8
    assert client.machines.gaps(filler.id, since=NOW + timedelta(hours=1)).gaps == []
    with pytest.raises(NotFound):
        client.machines.gaps("padova/none")


def test_status_and_silent_answer(client: Client) -> None:
    assert client.machines.silent().silent == []
    assert client.health.status().warnings == {}
