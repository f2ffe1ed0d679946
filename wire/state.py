"""How an agent is: retained on the broker, and left behind as its last will."""

import re
from typing import Annotated, ClassVar, Final
from uuid import UUID

from pydantic import Field

from wire.events import Instance, WireModel
from wire.timestamps import UtcDatetime

_LONGEST_TEXT: Final = 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
Text = Annotated[str, Field(max_length=_LONGEST_TEXT, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


class Note(WireModel):
    """A short text and the plant time of what it describes."""

    text: Text
    at: UtcDatetime


class AgentState(WireModel):
    """An agent's account of itself. A will says ``online: false``; its time is when it is received."""

    added: ClassVar[tuple[str, ...]] = (
        "instance",
        "connected_at",
        "skipped",
        "last_skipped",
        "warning",
        "gave_way",
    )

    online: bool
    agent: str = Field(max_length=64, pattern=r"^[!-~ ]*$", description="Version of the agent, in plain ASCII.")
    epoch: UUID
    spooled: int = Field(ge=0, le=2**63 - 1, description="Events waiting for an ack.")
    skew_ms: int | None = Field(
        default=None,
        ge=-(2**63),
        le=2**63 - 1,
        description="Service's plant clock minus the agent's, estimated.",
    )
    at: UtcDatetime
    instance: Instance | None = None
    connected_at: UtcDatetime | None = Field(
        default=None, description="Plant time at which the agent's present connection began."
    )
    skipped: int = Field(
        default=0,
        ge=0,
        le=2**63 - 1,
        description="Rows of the source that could not be read as an alarm, since the spool was made.",
    )
    last_skipped: Note | None = Field(default=None, description="The last of these rows: where it is and why.")
    warning: Note | None = Field(default=None, description="The last thing that a person should look at.")
    gave_way: bool = Field(
        default=False, description="Offline because another agent was found to speak in this machine's name."
    )


def bounded(text: str, most: int = _LONGEST_TEXT) -> str:
    """Return text that fits into a field: on one line, without control characters, cut where it is too long."""
    return _CONTROL.sub("\ufffd", text)[:most]
