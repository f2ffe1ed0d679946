"""Alarm events on their way from a machine's agent to the service."""

from enum import StrEnum
from typing import Annotated, ClassVar, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wire.timestamps import UtcDatetime

MAX_EVENTS = 500
MAX_GAPS = 500

Seq = Annotated[int, Field(ge=1, le=2**63 - 1, strict=True, description="Row of this spool, from 1.")]
Code = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True, description="The machine builder's alarm code.")]
SeqRange = tuple[Seq, Seq]
Instance = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        pattern=r"^[!-~]+$",
        description="The process of the agent that speaks: host, process id and a random part.",
    ),
]


class WireModel(BaseModel):
    """Strict types, no NaN, unknown fields ignored: an older side reads a newer one.

    ``added`` names fields that came after the first version; they are written only where they are not the default.
    """

    added: ClassVar[tuple[str, ...]] = ()
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class AlarmEvent(WireModel):
    """One alarm, as the machine raised it; its identity is (site, machine, epoch, seq)."""

    seq: Seq
    code: Code
    at: UtcDatetime


class GapReason(StrEnum):
    """Why events never left the machine."""

    SPOOL_FULL = "spool_full"
    SOURCE_LOST = "source_lost"


class Gap(WireModel):
    """Events the agent had to drop: which, from when to when, and why."""

    seqs: SeqRange
    first_at: UtcDatetime
    last_at: UtcDatetime
    reason: GapReason

    @model_validator(mode="after")
    def _runs_forwards(self) -> Self:
        if self.seqs[0] > self.seqs[1] or self.first_at > self.last_at:
            raise ValueError("a gap must run forwards")
        return self


class EventBatch(WireModel):
    """What an agent publishes: events and gaps of one spool, in the spool's order."""

    added: ClassVar[tuple[str, ...]] = ("instance",)

    epoch: UUID = Field(description="Identity of the spool that numbered these events.")
    events: list[AlarmEvent] = Field(default=[], max_length=MAX_EVENTS)
    gaps: list[Gap] = Field(default=[], max_length=MAX_GAPS)
    instance: Instance | None = None
