"""Events an agent had to drop."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from wire.timestamps import UtcDatetime

_EXAMPLE: Final[dict[str, Any]] = {
    "first_at": "2026-11-14T22:00:00.000Z",
    "last_at": "2026-11-15T01:30:00.000Z",
    "first_seq": 4001,
    "last_seq": 4100,
    "dropped": 98,
    "reason": "spool_full",
}


class GapView(BaseModel):
    """A run of events that never left the machine."""

    first_at: UtcDatetime
    last_at: UtcDatetime
    first_seq: int
    last_seq: int
    dropped: int = Field(
        description="How many of these numbers are really missing: some may have arrived before. 1 if unknown."
    )
    reason: str = Field(
        description="spool_full, or source_lost: the log was cut or replaced, how many are missing is unknown."
    )


class GapPage(BaseModel):
    """Gaps in time order; ``dropped`` counts all of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"gaps": [_EXAMPLE], "dropped": 98}]})

    gaps: list[GapView]
    dropped: int
