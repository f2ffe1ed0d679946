"""How the service is."""

from pydantic import BaseModel, Field

from wire.moment import Moment


class Alive(BaseModel):
    """The process answers."""

    status: str = "alive"


class Readiness(BaseModel):
    """Whether events are taken and forecasts given."""

    ready: bool
    troubles: dict[str, str] = Field(description="Each part that is not well, and why.")


class Status(BaseModel):
    """What the service is doing."""

    plant_time: Moment
    model_version: str | None
    ready: bool
    troubles: dict[str, str]
    warnings: dict[str, str] = Field(description="What works and is worth a look all the same.")
    counts: dict[str, int] = Field(description="Since the start: events by result, quarantined by reason.")
