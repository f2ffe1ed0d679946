"""Ingest: the table of bad input, line by line, on a real store."""

import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from service.app.stores import Stores
from service.database.tables import events, quarantine
from service.ingest.service import IncomingMessage, IngestBatch, IngestResult, TimePolicy, commit
from service.machines.events import PageQuery
from service.machines.models import Agent, Machine, QuarantineQuery
from service.machines.quarantine_store import QuarantineStore
from service.machines.store import MachineCache
from tests.service.conftest import EPOCH, FILLER, NOW, enrolled
from wire.events import TransitionKind
from wire.identity import MachineId
from wire.timestamps import isoformat

EVENTS = "alarmcast/v1/padova/filler-1/events"
STATE = "alarmcast/v1/padova/filler-1/state"


def event(seq: int, **changes: Any) -> dict[str, Any]:
    return {"seq": seq, "code": 139, "at": isoformat(NOW - timedelta(minutes=seq)), **changes}


def batch(*rows: object, **more: object) -> bytes:
    return json.dumps({"epoch": str(EPOCH), "events": list(rows), **more}).encode()


def take(stores: Stores, *messages: IncomingMessage) -> IngestResult:
    intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines))
    for message in messages:
        intake.add(message)
    return commit(intake, recorder=stores.events)


def rows(stores: Stores, table: Any) -> int:
    with stores.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def reasons(stores: Stores) -> list[str]:
    with stores.database.read() as connection:
        return list(connection.execute(select(quarantine.c.reason).order_by(quarantine.c.id)).scalars())


@pytest.mark.usefixtures("filler")
def test_what_is_committed_is_acked_by_its_numbers(stores: Stores) -> None:
    receipt = take(
        stores, IncomingMessage(EVENTS, batch(event(1), event(2))), IncomingMessage(EVENTS, batch(event(5)))
    )
    ((machine, ack),) = receipt.acks
    assert machine == FILLER
    assert (ack.epoch, ack.seqs, ack.now) == (EPOCH, [(1, 2), (5, 5)], NOW)
    assert receipt.recorded.stored == rows(stores, events) == 3
    assert receipt.affected == {FILLER}


@pytest.mark.usefixtures("filler")
def test_a_resent_batch_is_acked_again_and_changes_nothing(stores: Stores) -> None:
    first = take(stores, IncomingMessage(EVENTS, batch(event(1), event(2))))
    again = take(stores, IncomingMessage(EVENTS, batch(event(1), event(2))))
    assert again.acks == first.acks
    assert (again.counts["stored"], again.counts["duplicate"]) == (0, 2)


def test_transitions_are_stored_once_acked_and_no_alarms(stores: Stores, filler: Machine) -> None:
    changes = [event(2, kind="cleared"), event(3, kind="acknowledged", at="2019-11-16T00:00:00Z")]
    message = IncomingMessage(EVENTS, batch(event(1), transitions=changes))
    first, again = take(stores, message), take(stores, message)
    assert first.acks[0][1].seqs == again.acks[0][1].seqs == [(1, 3)]
    assert (first.counts["stored"], first.counts["transitions"], first.counts["flagged"]) == (1, 2, 0)
    assert (again.counts["duplicate"], rows(stores, events)) == (3, 3)
    assert len(stores.events.series(filler, NOW - timedelta(days=5000), NOW)) == 1
    assert stores.events.flagged(filler) == 0
    assert [alarm.kind for alarm in stores.events.page(filler, PageQuery()).alarms] == [None]
    (cleared,) = stores.events.page(filler, PageQuery(kind=TransitionKind.CLEARED)).alarms
    assert (cleared.at, cleared.kind, cleared.flag) == (NOW - timedelta(minutes=2), "cleared", None)
    late = stores.events.page(filler, PageQuery(kind=TransitionKind.ACKNOWLEDGED, flagged=True)).alarms
    assert [alarm.flag for alarm in late] == ["too_old"]


@pytest.mark.usefixtures("filler")
def test_a_described_code_is_in_the_catalogue_as_from_the_machine(stores: Stores) -> None:
    codes = [{"code": 139, "name": "Infeed.Jam", "text": "Bottle jam"}, {"code": 1, "name": "two\nlines"}]
    receipt = take(stores, IncomingMessage(EVENTS, batch(event(1), codes=codes)))
    assert receipt.acks[0][1].seqs == [(1, 1)]
    entry = stores.catalogue.entries()[139]
    assert (entry.text, entry.origin) == ("Bottle jam (Infeed.Jam)", "machine")
    assert reasons(stores) == ["bad_shape"]


@pytest.mark.usefixtures("filler")
def test_a_bad_transition_is_quarantined_acked_and_can_be_replayed(stores: Stores) -> None:
    receipt = take(
        stores, IncomingMessage(EVENTS, batch(transitions=[event(1, kind="gone"), event(2, kind="cleared")]))
    )
    assert receipt.acks[0][1].seqs == [(1, 2)]
    with stores.database.read() as connection:
        body = connection.execute(select(quarantine.c.body)).scalar_one()
    assert json.loads(body)["transitions"][0]["kind"] == "gone"
    corrected = take(stores, IncomingMessage(EVENTS, body.replace(b"gone", b"cleared")))
    assert corrected.counts["transitions"] == 1


@pytest.mark.usefixtures("filler")
def test_a_bad_event_is_quarantined_and_acked_while_its_batch_is_stored(stores: Stores) -> None:
    receipt = take(
        stores, IncomingMessage(EVENTS, batch(event(1), event(2, code=None), event(3, at="2026-11-16T00:00:00")))
    )
    assert receipt.acks[0][1].seqs == [(1, 3)]
    assert rows(stores, events) == 1
    assert reasons(stores) == ["bad_code", "bad_time"]
    assert receipt.counts["quarantined:bad_code"] == 1


@pytest.mark.usefixtures("filler")
@pytest.mark.parametrize(
    ("topic", "payload", "reason"),
    [
        (EVENTS, b"{", "not_json"),
        (EVENTS, b"\xff\xfe", "not_json"),
        (EVENTS, b"x" * 70_000, "oversize"),
        (EVENTS, b'{"epoch":"none"}', "bad_epoch"),
        (EVENTS, b"[]", "bad_shape"),
        (STATE, b'{"online":"yes"}', "bad_shape"),
        ("alarmcast/v1/Padova/filler-1/events", b"{}", "topic"),
        ("alarmcast/v9/padova/filler-1/events", b"{}", "topic"),
    ],
)
def test_what_cannot_be_read_is_quarantined_whole_and_acks_nobody(
    stores: Stores, topic: str, payload: bytes, reason: str
) -> None:
    receipt = take(stores, IncomingMessage(topic, payload))
    assert receipt.acks == []
    assert reasons(stores) == [reason]
    with stores.database.read() as connection:
        assert connection.execute(select(quarantine.c.body)).scalar_one() == payload[:64_000]


def test_a_machine_that_is_not_registered_is_listed_and_loses_nothing(stores: Stores) -> None:
    receipt = take(stores, IncomingMessage(EVENTS, batch(event(1))))
    assert (receipt.acks, rows(stores, events), reasons(stores)) == ([], 0, [])
    assert [knock.machine for knock in stores.machines.unregistered()] == [FILLER]


@pytest.mark.usefixtures("filler")
@pytest.mark.parametrize(
    ("shift", "kept_in_windows"),
    [
        (timedelta(minutes=5), True),
        (timedelta(minutes=5, seconds=1), False),
        (-timedelta(days=400), True),
        (-timedelta(days=400, seconds=1), False),
    ],
)
def test_an_event_of_an_unbelievable_time_is_stored_acked_and_kept_out_of_windows(
    stores: Stores,
    filler: Machine,
    shift: timedelta,
    kept_in_windows: bool,  # noqa: FBT001
) -> None:
    receipt = take(stores, IncomingMessage(EVENTS, batch(event(1, at=isoformat(NOW + shift)))))
    assert receipt.acks[0][1].seqs == [(1, 1)]
    assert rows(stores, events) == 1
    seen = stores.events.series(filler, NOW - timedelta(days=500), NOW + timedelta(days=1))
    assert len(seen) == kept_in_windows
    assert receipt.counts["flagged"] == (not kept_in_windows)


def test_the_same_number_with_another_body_is_stored_beside_the_first(stores: Stores, filler: Machine) -> None:
    first = take(stores, IncomingMessage(EVENTS, batch(event(1), instance="edge/1/a")))
    assert (first.acks[0][1].instance, first.acks[0][1].reused) == ("edge/1/a", False)
    for stored in (1, 0):  # sent again it changes nothing
        receipt = take(stores, IncomingMessage(EVENTS, batch(event(1, code=7), event(2), instance="edge/2/b")))
        ack = receipt.acks[0][1]
        assert (ack.seqs, ack.instance, ack.reused) == ([(1, 2)], "edge/2/b", True)
        assert receipt.counts["reused_numbers"] == 1
        assert receipt.recorded.stored == 2 * stored
        assert [row.code for row in receipt.new_events] == [139, 7][: 2 * stored]
    assert reasons(stores) == []
    seen = stores.events.series(filler, NOW - timedelta(hours=1), NOW)
    assert sorted(seen.codes.tolist()) == [7, 139, 139]
    third = take(stores, IncomingMessage(EVENTS, batch(event(1, code=8), event(1, code=9))))
    assert (third.recorded.stored, rows(stores, events), reasons(stores)) == (2, 5, [])


@pytest.mark.usefixtures("filler")
def test_acks_go_to_the_process_that_sent_the_events(stores: Stores) -> None:
    receipt = take(
        stores,
        IncomingMessage(EVENTS, batch(event(1), instance="edge/1/a")),
        IncomingMessage(EVENTS, batch(event(2), instance="edge/2/b")),
        IncomingMessage(EVENTS, batch(event(3))),
        IncomingMessage(EVENTS, batch(event(4), event(5, code=-1), instance="edge/1/a")),
        IncomingMessage(EVENTS, batch(event(6), instance=7)),
    )
    acked = {ack.instance: ack.seqs for _, ack in receipt.acks}
    assert acked == {"edge/1/a": [(1, 1), (4, 5)], "edge/2/b": [(2, 2)], None: [(3, 3), (6, 6)]}


@pytest.mark.usefixtures("filler")
def test_two_agents_of_one_name_are_kept_with_both_names(stores: Stores, filler: Machine) -> None:
    def said(instance: str, *, online: bool = True) -> IncomingMessage:
        told = json.loads(state(online=online, minutes_ago=0)) | {"instance": instance}
        return IncomingMessage(STATE, json.dumps(told).encode())

    take(stores, said("edge-1/7/aa"), said("edge-2/9/bb"))
    agent = stores.machines.agent(filler)
    assert agent
    assert agent.duplicate is None, "a restart"
    take(stores, said("edge-1/7/aa"), said("edge-2/9/bb"), said("edge-1/7/aa"))
    agent = stores.machines.agent(filler)
    assert agent
    assert agent.duplicate
    assert "edge-1/7/aa" in agent.duplicate.text
    assert "edge-2/9/bb" in agent.duplicate.text


@pytest.mark.usefixtures("filler")
def test_a_gap_is_stored_and_acked_like_events(stores: Stores, filler: Machine) -> None:
    gap = {"seqs": [7, 9], "first_at": isoformat(NOW), "last_at": isoformat(NOW), "reason": "spool_full"}
    receipt = take(stores, IncomingMessage(EVENTS, batch(gaps=[gap])))
    assert receipt.acks[0][1].seqs == [(7, 9)]
    (kept,) = stores.events.gaps(filler, NOW - timedelta(hours=1), NOW + timedelta(hours=1))
    assert kept.events == 3


@pytest.mark.usefixtures("filler")
def test_rows_that_an_agent_cannot_read_leave_a_few_samples(stores: Stores, filler: Machine) -> None:
    present: dict[int, Agent] = {}

    def report(skipped: int, minutes: int) -> list[str]:
        note = {"text": f"byte {skipped}: no time", "at": isoformat(NOW + timedelta(minutes=minutes))}
        said = json.loads(state(online=True, minutes_ago=0)) | {"skipped": skipped, "last_skipped": note}
        intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines), present=present)
        intake.add(IncomingMessage(STATE, json.dumps(said).encode()))
        commit(intake, recorder=stores.events)
        present.update(intake.write.agent_states)
        return reasons(stores)

    assert report(7, 1) == ["unreadable_row"]
    for skipped in range(8, 90):
        assert report(skipped, 2) == ["unreadable_row"]
    assert report(90, 30) == ["unreadable_row"] * 2
    present.clear()  # the service was restarted
    assert report(90, 30) == ["unreadable_row"] * 2
    (newest, _) = QuarantineStore(stores.database).page(QuarantineQuery(10))
    assert newest.body == b"2026-11-16T08:37:00.000Z byte 90: no time"
    assert (newest.machine, newest.detail[:11]) == (filler.id, "90 rows of ")


def state(*, online: bool, minutes_ago: int) -> bytes:
    at = isoformat(NOW - timedelta(minutes=minutes_ago))
    told = {"online": online, "agent": "1.0.0", "epoch": str(EPOCH), "spooled": 12, "skew_ms": -40, "at": at}
    return json.dumps(told).encode()


def test_a_last_will_happened_when_it_was_received(stores: Stores, filler: Machine) -> None:
    take(stores, IncomingMessage(STATE, state(online=False, minutes_ago=600)))
    agent = stores.machines.agent(filler)
    assert agent
    assert (agent.online, agent.last_seen_at, agent.spooled, agent.skew_ms) == (False, NOW, 12, -40)


def test_a_retained_state_is_as_old_as_it_says(stores: Stores, filler: Machine) -> None:
    take(stores, IncomingMessage(STATE, state(online=True, minutes_ago=600), retained=True))
    agent = stores.machines.agent(filler)
    assert agent
    assert (agent.online, agent.last_seen_at) == (True, NOW - timedelta(minutes=600))


def test_who_was_enrolled_or_retired_is_known_after_a_second(stores: Stores) -> None:
    seconds = iter([0.0, 0.0, 0.5, 1.5, 1.5])
    registry = MachineCache(stores.machines, monotonic=lambda: next(seconds))
    assert registry.find(MachineId("lyon", "x")) is None
    enrolled(stores.enrolments, MachineId("lyon", "x"))
    assert registry.find(MachineId("lyon", "x")) is None
    assert registry.find(MachineId("lyon", "x")) is not None


@pytest.mark.usefixtures("filler")
def test_two_machines_that_contradict_themselves_with_the_same_words_are_both_stored(stores: Stores) -> None:
    enrolled(stores.enrolments, MachineId("padova", "filler-2"))
    for machine in ("filler-1", "filler-2"):
        topic = f"alarmcast/v1/padova/{machine}/events"
        take(stores, IncomingMessage(topic, batch(event(1))), IncomingMessage(topic, batch(event(1, code=7))))
    assert (rows(stores, events), reasons(stores)) == (4, [])


def test_a_gap_that_was_acked_is_not_forgotten_for_a_shorter_one(stores: Stores, filler: Machine) -> None:
    gap = {"first_at": isoformat(NOW), "last_at": isoformat(NOW), "reason": "spool_full"}
    for last in (9, 7, 12):
        take(stores, IncomingMessage(EVENTS, batch(gaps=[{**gap, "seqs": [7, last]}])))
        (kept,) = stores.events.gaps(filler, NOW - timedelta(hours=1), NOW + timedelta(hours=1))
        assert kept.last_seq == max(9, last)


@pytest.mark.usefixtures("filler")
@pytest.mark.parametrize("junk", ["é" * 30_000, [1e15] * 10_000, "\ud800" * 10_000])
def test_what_is_quarantined_has_64_kb_at_most_however_it_is_written(stores: Stores, junk: object) -> None:
    told = {"epoch": str(EPOCH), "events": [{**event(1), "code": junk}]}
    payload = json.dumps(told, ensure_ascii=isinstance(junk, str) and "\ud800" in junk, separators=(",", ":"))
    payload = payload.replace("1000000000000000.0", "1e15")
    receipt = take(stores, IncomingMessage(EVENTS, payload.encode()))
    assert receipt.acks[0][1].seqs == [(1, 1)]
    with stores.database.read() as connection:
        assert 30_000 < len(connection.execute(select(quarantine.c.body)).scalar_one()) <= 64_000


def test_a_state_that_says_nothing_new_does_not_have_a_forecast_made_anew(stores: Stores, filler: Machine) -> None:
    def touched(before: dict[int, Agent], *, online: bool = True) -> set[MachineId]:
        stale_after = timedelta(minutes=10)
        intake = IngestBatch(
            NOW, TimePolicy(), MachineCache(stores.machines), present=before, stale_after=stale_after
        )
        intake.add(IncomingMessage(STATE, state(online=online, minutes_ago=0)))
        return commit(intake, recorder=stores.events).affected

    def told(minutes: int, *, online: bool = True) -> dict[int, Agent]:
        return {filler.row_id: Agent(online, NOW - timedelta(minutes=minutes), "1", EPOCH, 0, 0)}

    assert touched({}) == {FILLER}, "the first one heard"
    assert touched(told(1)) == set()
    assert touched(told(1), online=False) == {FILLER}, "it left"
    assert touched(told(1, online=False)) == {FILLER}, "it is back"
    assert touched(told(10)) == {FILLER}, "its forecasts were stale"


def test_a_last_will_does_not_take_back_what_its_agent_said_since(stores: Stores, filler: Machine) -> None:
    def heard(before: dict[int, Agent], **changes: Any) -> dict[int, Agent]:
        said = {"online": True, "agent": "1", "epoch": str(EPOCH), "spooled": 0, "at": isoformat(NOW), **changes}
        intake = IngestBatch(NOW, TimePolicy(), MachineCache(stores.machines), present=before)
        intake.add(IncomingMessage(STATE, json.dumps(said).encode()))
        return intake.write.agent_states

    row = {"text": "byte 7: wrong", "at": isoformat(NOW)}
    present = heard({}, skipped=2, last_skipped=row)
    assert (present[filler.row_id].skipped, present[filler.row_id].spooled) == (2, 0)
    will = heard(present, online=False, spooled=214, at=isoformat(NOW - timedelta(hours=1)))[filler.row_id]
    assert (will.online, will.spooled, will.skipped) == (False, 0, 2)
    farewell = heard(present, online=False, spooled=3, at=isoformat(NOW + timedelta(seconds=1)))[filler.row_id]
    assert (farewell.online, farewell.spooled) == (False, 3)
