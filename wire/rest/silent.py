"""Machines that should have spoken."""

from pydantic import BaseModel, Field

from wire.identity import Identifier
from wire.moment import Moment


class SilentView(BaseModel):
    """A machine that is silent for longer than it has ever paused."""

    site: Identifier
    machine: Identifier
    since: Moment = Field(description="When its last alarm was.")
    missed_hours: float = Field(description="Hours since then in which it usually speaks.")
    usual_hours: float = Field(description="How many such hours are no silence yet.")


class SilentFleet(BaseModel):
    """Silent machines, the strangest first."""

    silent: list[SilentView]
