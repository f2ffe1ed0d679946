"""Events an agent had to drop."""

from pydantic import BaseModel, Field

from wire.moment import Moment


class GapView(BaseModel):
    """A run of events that never left the machine."""

    first_at: Moment
    last_at: Moment
    first_seq: int
    last_seq: int
    dropped: int = Field(description="How many of these numbers are really missing: some may have arrived before.")
    reason: str


class GapPage(BaseModel):
    """Gaps in time order; ``dropped`` counts all of them."""

    gaps: list[GapView]
    dropped: int
