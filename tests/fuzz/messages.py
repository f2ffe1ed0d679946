"""What a plant may hear on its topics: mostly nearly right, from machines that are and are not enrolled."""

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from service.ingest.service import IncomingMessage
from tests.fuzz.mutation import MOMENTS, TOKENS, VALUES, mutated_bytes, mutated_value, written
from wire.timestamps import isoformat

NOW = datetime(2026, 11, 16, 8, 7, tzinfo=UTC)
ENROLLED = ("padova/filler-1", "padova/filler-2")
STRANGERS = ("lyon/wrapper-9", "padova/filler-3")
EPOCHS = tuple(UUID(int=number, version=4) for number in range(1, 7))
_ODD_TOPICS = (
    "",
    "alarmcast/v1/padova/filler-1",
    "alarmcast/v1/Padova/filler-1/events",
    "alarmcast/v2/padova/filler-1/events",
    "alarmcast/v1/padova/filler-1/events/more",
    "alarmcast/v1/padova/filler-1\n/events",
    "alarmcast/v1/padova/../../etc/passwd/events",
    "alarmcast/v1/padova/filler-1/EVENTS",
    "alarmcast/v1//filler-1/events",
    "$SYS/broker/uptime",
    "\0",
    "\ufffd",
    "x" * 60_000,
    "alarmcast/v1/" + "a" * 63 + "/" + "a" * 64 + "/state",
)


def message(dice: Random) -> IncomingMessage:
    """Return one message: a fifth of them good, the others changed in structure, in bytes, or in both."""
    told = dice.random() < 0.2
    value = _state(dice) if told else _batch(dice)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        value = mutated_value(dice, value)
    payload = written(dice, value)
    if dice.random() < 0.4:
        payload = mutated_bytes(dice, payload, written(dice, _batch(dice)))
    return IncomingMessage(_topic(dice, "state" if told else "events"), payload, retained=dice.random() < 0.1)


def _topic(dice: Random, channel: str) -> str:
    chance = dice.random()
    if chance < 0.02:
        return dice.choice(_ODD_TOPICS)
    if chance < 0.03:
        return mutated_bytes(dice, b"alarmcast/v1/padova/filler-1/events").decode(errors="replace")
    if chance < 0.05:
        channel = dice.choice(("events", "state", "acks", "forecast"))
    return f"alarmcast/v1/{dice.choice(STRANGERS if chance > 0.95 else ENROLLED)}/{channel}"


def _batch(dice: Random) -> dict[str, Any]:
    first = dice.choice((1, 1, dice.randrange(1, 400), 2**63 - 5))
    events = [
        {"seq": min(first + place, 2**63 - 1), "code": dice.choice((139, 26, 0, 2**31 - 1)), "at": _at(dice)}
        for place in range(dice.choice((0, 1, 2, 3, 8, 30)))
    ]
    gaps = []
    if dice.random() < 0.2:
        start = dice.randrange(1, 500)
        last = start + dice.choice((0, 1, 90, 2**40))
        gaps = [{"seqs": [start, last], "first_at": _at(dice), "last_at": isoformat(NOW), "reason": "spool_full"}]
    more: dict[str, Any] = {}
    if dice.random() < 0.2:
        kinds = ("cleared", "acknowledged", "stopped", "resumed")
        more["transitions"] = [{**event, "kind": dice.choice(kinds)} for event in events[::2]]
        events = events[1::2]
    return {"epoch": str(dice.choice(EPOCHS)), "events": events, "gaps": gaps, **more}


def _state(dice: Random) -> dict[str, Any]:
    return {
        "online": dice.random() < 0.7,
        "agent": "1.0.0",
        "epoch": str(dice.choice(EPOCHS)),
        "spooled": dice.choice((0, 12, 2**63 - 1)),
        "skew_ms": dice.choice((None, -40)),
        "at": _at(dice),
    }


def _at(dice: Random) -> str:
    if dice.random() < 0.1:
        return dice.choice(MOMENTS)
    return isoformat(NOW - timedelta(seconds=dice.choice((0, 1, 3600, 86_400 * 399, 86_400 * 401, -290, -310))))


# The same, as Hypothesis thinks of it: slower, wider, and what it finds is shrunk to the smallest that fails.
_anything = st.recursive(
    st.sampled_from(VALUES) | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
_moments = st.sampled_from(MOMENTS) | st.datetimes(
    min_value=datetime(1990, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(2110, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(lambda at: at.isoformat())
_events = st.fixed_dictionaries(
    {"seq": st.integers(1, 60) | _anything, "code": st.integers(0, 300) | _anything, "at": _moments | _anything}
)
_gaps = st.fixed_dictionaries(
    {
        "seqs": st.lists(st.integers(-1, 2**63), min_size=1, max_size=3) | _anything,
        "first_at": _moments,
        "last_at": _moments | _anything,
        "reason": st.sampled_from(("spool_full", "lost", 7)),
    }
)
_batches = st.fixed_dictionaries(
    {"epoch": st.sampled_from([str(epoch) for epoch in EPOCHS]) | _anything},
    optional={
        "events": st.lists(_events | _anything, max_size=6) | _anything,
        "gaps": st.lists(_gaps | _anything, max_size=3) | _anything,
        "more": _anything,
    },
)
_payloads = (
    _batches.map(lambda batch: json.dumps(batch).encode())
    | st.binary(max_size=200)
    | st.lists(st.sampled_from(TOKENS), max_size=12).map(b"".join)
)
_topics = st.sampled_from(
    [f"alarmcast/v1/{machine}/{kind}" for machine in (*ENROLLED, *STRANGERS) for kind in ("events", "state")]
    + list(_ODD_TOPICS)
)
imagined = st.builds(IncomingMessage, _topics, _payloads, st.booleans())
