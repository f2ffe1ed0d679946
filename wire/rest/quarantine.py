"""What was refused."""

from pydantic import BaseModel, ConfigDict, Field

from wire.codec import MAX_BYTES
from wire.moment import Moment


class ItemView(BaseModel):
    """Something that was refused."""

    id: int
    received_at: Moment
    machine: str | None = Field(description="site/machine, if it is known whose it is.")
    topic: str
    reason: str
    detail: str
    size: int = Field(description="Bytes of the body.")
    sha256: str


class WholeItem(ItemView):
    """One item with its body: as text where it is text, and in any case as base64."""

    text: str | None
    base64: str


class ItemPage(BaseModel):
    """Items, newest first; ``next`` is the cursor of the page after this one, null on the last."""

    items: list[ItemView]
    next: int | None


class ReasonView(BaseModel):
    """How much is quarantined for one reason."""

    reason: str
    items: int
    last_at: Moment


class Correction(BaseModel):
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

    stored: int = Field(description="Events that are stored now.")
    known: int = Field(description="Events that were stored already.")
    refused: int = Field(description="Items that are refused still; they stay in the quarantine.")
