"""What was refused."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.codec import MAX_BYTES
from wire.timestamps import UtcDatetime

_EXAMPLE: Final[dict[str, Any]] = {
    "id": 12,
    "received_at": "2026-11-16T07:59:00.000Z",
    "machine": "padova/filler-1",
    "topic": "alarmcast/v1/padova/filler-1/events",
    "reason": "bad_code",
    "detail": "code: Input should be greater than or equal to 0",
    "size": 55,
    "sha256": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
}


class QuarantineItemView(BaseModel):
    """Something that was refused."""

    id: int
    received_at: UtcDatetime
    machine: str | None = Field(description="site/machine, if it is known whose it is.")
    topic: str
    reason: str
    detail: str
    size: int = Field(description="Bytes of the body.")
    sha256: str


class QuarantineItemDetail(QuarantineItemView):
    """One item with its body: as text where it is text, and in any case as base64."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _EXAMPLE
                | {
                    "text": '{"seq": 7, "code": -1, "at": "2026-11-16T07:58:59.000Z"}',
                    "base64": "eyJzZXEiOiA3LCAiY29kZSI6IC0xLCAiYXQiOiAiMjAyNi0xMS0xNlQwNzo1ODo1OS4wMDBaIn0=",
                }
            ]
        }
    )

    text: str | None
    base64: str


class ItemPage(BaseModel):
    """Items, newest first; ``next`` is the cursor of the page after this one, null on the last."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_EXAMPLE], "next": 12}]})

    items: list[QuarantineItemView]
    next: int | None


class ReasonView(BaseModel):
    """How much is quarantined for one reason."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"reason": "bad_code", "items": 2, "last_at": "2026-11-16T07:59:00.000Z"}]}
    )

    reason: str
    items: int
    last_at: UtcDatetime


class ReplayBody(BaseModel):
    """A body to judge instead of the one that was refused."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"body": '{"epoch":"…","events":[{"seq":7,"code":139,"at":"2026-11-16T00:00:00Z"}]}'}]
        },
    )

    body: str = Field(max_length=MAX_BYTES)


class ReplayView(BaseModel):
    """What became of what was replayed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"stored": 1, "known": 0, "refused": 0}]})

    stored: int = Field(description="Events that are stored now.")
    known: int = Field(description="Events that were stored already.")
    refused: int = Field(description="Items that are refused still; they stay in the quarantine.")
