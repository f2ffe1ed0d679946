"""Bytes to models and back, without ever letting one bad event take its batch with it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from wire.errors import PayloadRejected
from wire.events import (
    MAX_CODES,
    MAX_EVENTS,
    MAX_GAPS,
    AlarmEvent,
    AlarmTransition,
    CodeDescription,
    EventBatch,
    Gap,
    Instance,
    Seq,
    SeqRange,
)

MAX_BYTES = 64_000

Model = TypeVar("Model", bound=BaseModel)
_UUID = TypeAdapter(UUID)
_SEQ: TypeAdapter[int] = TypeAdapter(Seq)
_INSTANCE: TypeAdapter[str] = TypeAdapter(Instance)
_SEQS: TypeAdapter[tuple[int, int]] = TypeAdapter(SeqRange)


@dataclass(frozen=True)
class RejectedItem:
    """An item of a batch that cannot be taken; acked by its seqs if it has readable ones."""

    reason: str
    detail: str
    body: bytes
    seqs: tuple[int, int] | None
    kind: str = "events"  # the list of the batch that contained it


class DecodedBatch(NamedTuple):
    """A batch in which every item was judged alone."""

    epoch: UUID
    events: list[AlarmEvent]
    gaps: list[Gap]
    rejected: list[RejectedItem]
    instance: str | None = None
    transitions: Sequence[AlarmTransition] = ()
    codes: Sequence[CodeDescription] = ()


def encode(model: BaseModel) -> bytes:
    """Write a model as the wire has it."""
    added: tuple[str, ...] = getattr(model, "added", ())
    fields = type(model).model_fields
    unused = {name for name in added if getattr(model, name) == fields[name].default}
    return model.model_dump_json(exclude=unused or None).encode()


def exceeds_limit(payload: bytes) -> bool:
    """Say whether a payload is larger than the contract allows.

    It must not be queued: a broker disconnects a client that sends a packet above its limit, and a client sends an
    unconfirmed QoS 1 message again after every reconnect.
    """
    return len(payload) > MAX_BYTES


def decode(model: type[Model], payload: bytes) -> Model:
    """Read a whole message, or raise :class:`PayloadRejected` saying what is wrong with it."""
    _refuse_oversize(payload)
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        raise PayloadRejected(*_why(error)) from None


def decode_batch(payload: bytes) -> DecodedBatch:
    """Read an agent's batch, judging each of its items alone.

    Raises :class:`PayloadRejected` only where no readable epoch is left to ack to.
    """
    _refuse_oversize(payload)
    try:
        batch = EventBatch.model_validate_json(payload)
    except ValidationError as error:
        return _salvage(payload, error)
    return DecodedBatch(batch.epoch, batch.events, batch.gaps, [], batch.instance, batch.transitions, batch.codes)


def _refuse_oversize(payload: bytes) -> None:
    if exceeds_limit(payload):
        raise PayloadRejected("oversize", f"{len(payload)} bytes; the contract allows {MAX_BYTES}")


def _salvage(payload: bytes, error: ValidationError) -> DecodedBatch:
    try:
        # The standard library reads NaN, lone surrogates and endless integers; each item is then judged
        # strictly by itself, so only the one that holds them falls.
        envelope = json.loads(payload, parse_int=_word_or_infinity)
        epoch = _UUID.validate_strings(envelope["epoch"])
        lists = {name: envelope.get(name, []) for name in ("events", "gaps", "transitions", "codes")}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise PayloadRejected(*_why(error)) from None
    if not all(isinstance(items, list) for items in lists.values()):
        raise PayloadRejected(*_why(error))
    events, gaps, transitions, codes = lists.values()
    numbered = len(events) + len(transitions)
    if numbered > MAX_EVENTS or len(gaps) > MAX_GAPS or len(codes) > MAX_CODES:
        detail = f"{numbered} events and transitions, {len(gaps)} gaps and {len(codes)} codes in one message"
        raise PayloadRejected("too_many", detail)
    bad: list[RejectedItem] = []
    good_events = _judge(AlarmEvent, events, bad, "events")
    good_gaps = _judge(Gap, gaps, bad, "gaps")
    good_transitions = _judge(AlarmTransition, transitions, bad, "transitions")
    good_codes = _judge(CodeDescription, codes, bad, "codes")
    instance = _readable_instance(envelope.get("instance"))
    return DecodedBatch(epoch, good_events, good_gaps, bad, instance, good_transitions, good_codes)


def _judge(model: type[Model], items: list[Any], bad: list[RejectedItem], kind: str) -> list[Model]:
    good: list[Model] = []
    for item in items:
        body = _written(item)
        try:
            good.append(model.model_validate_json(body))
        except ValidationError as error:
            reason, detail = _why(error)
            bad.append(RejectedItem(reason, detail, body, _readable_seqs(item), kind))
    return good


def _written(item: Any) -> bytes:
    """Write an item no longer than it came; escapes would treble a text in another alphabet."""
    try:
        return json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a character has no bytes of its own
        return json.dumps(item, separators=(",", ":")).encode()


def _word_or_infinity(digits: str) -> int | float:
    # Python refuses to read integers of thousands of digits; no machine word has more than 20.
    return int(digits) if len(digits) <= 20 else float("inf")  # noqa: PLR2004


def _readable_instance(item: Any) -> str | None:
    try:
        return _INSTANCE.validate_python(item)
    except ValidationError:
        return None


def _readable_seqs(item: Any) -> tuple[int, int] | None:
    if not isinstance(item, dict):
        return None
    try:
        if "seqs" in item:
            first, last = _SEQS.validate_python(tuple(item["seqs"]))
            return (first, last) if first <= last else None
        seq = _SEQ.validate_python(item.get("seq"))
    except (ValueError, TypeError):
        return None
    return seq, seq


def _why(error: ValidationError) -> tuple[str, str]:
    """Turn the first of pydantic's complaints into a reason to count by and a detail to read."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    kind = first["type"]
    if kind == "json_invalid":
        return "not_json", first["msg"]
    field = str(first["loc"][-1]) if first["loc"] else "body"
    reason = {"at": "bad_time", "code": "bad_code", "seq": "bad_seq", "epoch": "bad_epoch"}.get(field, "bad_shape")
    return reason, f"{where or 'body'}: {first['msg']}"
