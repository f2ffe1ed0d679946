"""The decoder: whatever arrives, each event is judged alone and nothing raises but a rejection."""

import json
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.codec import MAX_BYTES, decode_batch
from wire.errors import PayloadRejected

EPOCH = "0f9d9a3c-9d0e-4a39-8f0a-5b8f3c9c2a11"
GOOD = {"seq": 1, "code": 139, "at": "2026-11-16T00:00:00.123Z"}


def payload(*events: object, **more: object) -> bytes:
    return json.dumps({"epoch": EPOCH, "events": list(events), **more}).encode()


def test_a_good_batch_decodes_whole() -> None:
    batch = decode_batch(payload(GOOD, gaps=[]))
    assert batch.epoch == UUID(EPOCH)
    assert [(event.seq, event.code, event.at.microsecond) for event in batch.events] == [(1, 139, 123000)]
    assert batch.rejected == []


def test_unknown_fields_are_ignored_so_that_newer_agents_are_understood() -> None:
    batch = decode_batch(payload({**GOOD, "line": "B"}, colour="red"))
    assert len(batch.events) == 1


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({**GOOD, "code": 1.5}, "bad_code"),
        ({**GOOD, "code": "139"}, "bad_code"),
        ({**GOOD, "code": True}, "bad_code"),
        ({**GOOD, "code": -1}, "bad_code"),
        ({**GOOD, "code": 2**31}, "bad_code"),
        ({**GOOD, "code": 10**4000}, "bad_code"),
        ({**GOOD, "code": float("nan")}, "bad_code"),
        ({**GOOD, "code": float("inf")}, "bad_code"),
        ({**GOOD, "at": "2026-11-16T00:00:00"}, "bad_time"),
        ({**GOOD, "at": "9999-11-16T00:00:00Z"}, "bad_time"),
        ({**GOOD, "at": "1999-12-31T23:59:59Z"}, "bad_time"),
        ({**GOOD, "at": 1_700_000_000}, "bad_time"),
        ({**GOOD, "at": None}, "bad_time"),
        ({"seq": 1, "code": 139}, "bad_time"),
        ({**GOOD, "at": "x\ud800"}, "not_json"),
        ([], "bad_shape"),
        (None, "bad_shape"),
        ("event", "bad_shape"),
    ],
)
def test_one_bad_event_is_judged_alone_and_the_rest_is_taken(event: object, reason: str) -> None:
    batch = decode_batch(payload({**GOOD, "seq": 2}, event, {**GOOD, "seq": 3}))
    assert [good.seq for good in batch.events] == [2, 3]
    assert [bad.reason for bad in batch.rejected] == [reason]


def test_a_bad_event_with_a_readable_number_can_still_be_acked() -> None:
    (bad,) = decode_batch(payload({**GOOD, "seq": 9, "code": None})).rejected
    assert bad.seqs == (9, 9)
    assert json.loads(bad.body)["seq"] == 9


def test_a_bad_transition_or_code_is_judged_alone() -> None:
    cleared = {**GOOD, "kind": "cleared"}
    door = {"code": 7, "name": "Door open"}
    batch = decode_batch(
        payload(
            {**GOOD, "seq": 2},
            transitions=[{**cleared, "seq": 3}, {**GOOD, "seq": 4, "kind": "gone"}],
            codes=[door, {**door, "name": "two\nlines"}],
        )
    )
    assert [transition.kind for transition in batch.transitions] == ["cleared"]
    assert [described.name for described in batch.codes] == ["Door open"]
    assert [(bad.kind, bad.seqs) for bad in batch.rejected] == [("transitions", (4, 4)), ("codes", None)]
    assert [event.seq for event in batch.events] == [2]


@pytest.mark.parametrize("seq", [0, -1, True, 1.0, "1", 2**63, None])
def test_a_bad_event_without_a_readable_number_cannot(seq: object) -> None:
    (bad,) = decode_batch(payload({**GOOD, "seq": seq})).rejected
    assert bad.seqs is None


def test_a_gap_that_runs_backwards_is_bad_and_acks_nothing() -> None:
    gap = {"seqs": [9, 7], "first_at": GOOD["at"], "last_at": GOOD["at"], "reason": "spool_full"}
    (bad,) = decode_batch(payload(gaps=[gap])).rejected
    assert bad.seqs is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b"\xff\xfe\x00", "not_json"),
        (b"[" * 50_000, "not_json"),
        (b"null", "bad_shape"),
        (b"[]", "bad_shape"),
        (b'{"events":[]}', "bad_epoch"),
        (b'{"epoch":"x","events":[]}', "bad_epoch"),
        (b'{"epoch":7,"events":[]}', "bad_epoch"),
        (json.dumps({"epoch": EPOCH, "events": {}}).encode(), "bad_shape"),
        (json.dumps({"epoch": EPOCH, "events": [GOOD] * 501}).encode(), "too_many"),
        (
            json.dumps(
                {"epoch": EPOCH, "events": [GOOD] * 300, "transitions": [{**GOOD, "kind": "cleared"}] * 201}
            ).encode(),
            "too_many",
        ),
        (json.dumps({"epoch": EPOCH, "transitions": {}}).encode(), "bad_shape"),
        (b" " * (MAX_BYTES + 1), "oversize"),
    ],
)
def test_a_message_with_nothing_to_ack_is_rejected_whole(body: bytes, reason: str) -> None:
    with pytest.raises(PayloadRejected) as rejected:
        decode_batch(body)
    assert rejected.value.reason == reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
near_events = st.fixed_dictionaries(
    {}, optional={"seq": json_values, "code": json_values, "at": json_values | st.just(GOOD["at"])}
)


@given(st.lists(near_events | json_values, max_size=8))
def test_every_event_of_a_readable_batch_is_either_taken_or_bad(events: list[Any]) -> None:
    batch = decode_batch(json.dumps({"epoch": EPOCH, "events": events}).encode())
    assert len(batch.events) + len(batch.rejected) == len(events)


@given(st.binary(max_size=300))
def test_no_bytes_do_anything_but_decode_or_be_rejected(body: bytes) -> None:
    with suppress(PayloadRejected):
        decode_batch(body)
