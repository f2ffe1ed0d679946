"""Whether the process lives, whether it is ready, and what it has counted."""

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from service.web.parts import Parts
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


def router(parts: Parts) -> APIRouter:
    """Return the routes of health."""
    routes = APIRouter(tags=["health"])

    @routes.head("/livez", include_in_schema=False)
    @routes.get("/livez")
    async def livez() -> Alive:
        """Answers as long as the process does."""
        return Alive()

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz", responses={503: {"model": Readiness, "description": "Not ready; `troubles` says why."}})
    def readyz(response: Response) -> Readiness:
        """200 if events can be taken and forecasts given, otherwise 503 with what is wrong."""
        health = parts.health()
        response.status_code = 200 if health.ready else 503
        return Readiness(ready=health.ready, troubles=health.troubles)

    @routes.get("/v1/status")
    def status() -> Status:
        """What has been counted since the start, the plant's time and the model that serves."""
        health = parts.health()
        return Status(
            plant_time=parts.clock.now(),
            model_version=health.model_version,
            ready=health.ready,
            troubles=health.troubles,
            warnings=health.warnings,
            counts=health.counts,
        )

    return routes
