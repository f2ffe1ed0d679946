"""Machines that should have spoken."""

from pydantic import BaseModel, ConfigDict, Field

from wire.identity import Identifier
from wire.timestamps import UtcDatetime


class SilentView(BaseModel):
    """A machine that is silent for longer than it has ever paused."""

    site: Identifier
    machine: Identifier
    since: UtcDatetime = Field(description="When its last alarm was.")
    overdue_hours: float = Field(description="Hours since then in which it usually speaks.")
    usual_hours: float = Field(description="How many such hours are no silence yet.")


class SilentFleet(BaseModel):
    """Silent machines, the strangest first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "silent": [
                        {
                            "site": "padova",
                            "machine": "filler-1",
                            "since": "2026-11-15T16:20:00.000Z",
                            "overdue_hours": 9.5,
                            "usual_hours": 4.25,
                        }
                    ]
                }
            ]
        }
    )

    silent: list[SilentView]
