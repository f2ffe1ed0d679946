"""Alarm events on their way from a machine's agent to the service."""

from enum import StrEnum
from typing import Annotated, ClassVar, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wire.timestamps import UtcDatetime

MAX_EVENTS = 500  # events and transitions together
MAX_GAPS = 500
MAX_CODES = 250

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

_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f]*$"


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


class TransitionKind(StrEnum):
    """What happened to an alarm after it was raised.

    ``stopped`` and ``resumed``: the machine stood, and its stop reason was this code.
    """

    CLEARED = "cleared"
    ACKNOWLEDGED = "acknowledged"
    STOPPED = "stopped"
    RESUMED = "resumed"

    @property
    def number(self) -> int:
        """The number of the kind in spools and databases; 0 is an alarm that was raised."""
        return _KINDS.index(self) + 1

    @classmethod
    def of_number(cls, number: int) -> "TransitionKind":
        """Return the kind of a number."""
        return _KINDS[number - 1]


_KINDS = tuple(TransitionKind)


class AlarmTransition(WireModel):
    """A change of an alarm after its raise; numbered like events, and never counted as one."""

    seq: Seq
    code: Code
    at: UtcDatetime
    kind: TransitionKind


class CodeDescription(WireModel):
    """How the machine describes a code, sent with the code's first event."""

    code: Code
    name: str = Field(
        max_length=300,
        pattern=_ONE_LINE,
        description="Its name at the machine: a tag, a path or a number.",
    )
    text: str = Field(default="", max_length=500, pattern=_ONE_LINE)
    severity: str = Field(
        default="", max_length=100, pattern=_ONE_LINE, description="As the machine states it: a word or a number."
    )


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
    """What an agent publishes: events, transitions and gaps of one spool, in the spool's order."""

    added: ClassVar[tuple[str, ...]] = ("instance", "transitions", "codes")

    epoch: UUID = Field(description="Identity of the spool that numbered these events.")
    events: list[AlarmEvent] = Field(default=[], max_length=MAX_EVENTS)
    gaps: list[Gap] = Field(default=[], max_length=MAX_GAPS)
    instance: Instance | None = None
    transitions: list[AlarmTransition] = Field(
        default=[],
        max_length=MAX_EVENTS,
        description="Cleared and acknowledged alarms, and stops; they share the numbers of the events. "
        f"At most {MAX_EVENTS} together with the events.",
    )
    codes: list[CodeDescription] = Field(
        default=[], max_length=MAX_CODES, description="Descriptions of codes that the service may not know."
    )

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if len(self.events) + len(self.transitions) > MAX_EVENTS:
            raise ValueError(f"at most {MAX_EVENTS} events and transitions fit into one message")
        return self
