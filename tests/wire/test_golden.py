"""Version 1 of the contract, as it was first spoken: these payloads must decode for ever."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from wire.acks import Ack
from wire.codec import decode, encode
from wire.events import EventBatch
from wire.forecasts import Forecast
from wire.state import AgentState

GOLDEN = Path(__file__).parent / "golden"
MODELS: dict[str, type[BaseModel]] = {
    "events": EventBatch,
    "events_transitions": EventBatch,
    "acks": Ack,
    "state": AgentState,
    "forecast": Forecast,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_golden_payload_decodes_and_its_encoding_says_the_same(name: str) -> None:
    body = (GOLDEN / f"{name}.json").read_bytes()
    model = decode(MODELS[name], body)
    assert decode(MODELS[name], encode(model)) == model


@pytest.mark.parametrize("name", ["events_transitions", "acks", "state", "forecast"])
def test_the_encoding_is_the_golden_payload_to_the_letter(name: str) -> None:
    body = (GOLDEN / f"{name}.json").read_bytes()
    assert json.loads(encode(decode(MODELS[name], body))) == json.loads(body)


def test_an_offset_is_read_and_written_back_in_utc() -> None:
    batch = decode(EventBatch, (GOLDEN / "events.json").read_bytes())
    assert batch.events[1].at == datetime(2026, 11, 16, tzinfo=UTC)
    assert json.loads(encode(batch))["events"][1]["at"] == "2026-11-16T00:00:00.000Z"


def test_a_batch_without_transitions_and_codes_has_the_bytes_of_the_first_version() -> None:
    batch = decode(EventBatch, (GOLDEN / "events.json").read_bytes())
    assert list(json.loads(encode(batch))) == ["epoch", "events", "gaps"]


def test_a_gap_keeps_its_numbers_times_and_reason() -> None:
    (gap,) = decode(EventBatch, (GOLDEN / "events.json").read_bytes()).gaps
    assert (gap.seqs, gap.reason.value) == ((7, 9), "spool_full")
