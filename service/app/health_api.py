"""Whether the process lives, whether it is ready, and what it has counted."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

from service.http.principal import can_see, current_sites, current_user
from wire.rest.health import Liveness, Readiness, Status

if TYPE_CHECKING:
    from service.app.service import Service


def router(service: "Service") -> APIRouter:
    """Return the routes of health."""
    routes = APIRouter(tags=["health"])

    @routes.head("/livez", include_in_schema=False)
    @routes.get("/livez")
    async def check_liveness() -> Liveness:
        """Answers as long as the process does."""
        return Liveness()

    @routes.head("/readyz", include_in_schema=False)
    @routes.get(
        "/readyz", responses={503: {"model": Readiness, "description": "Not ready; `errors` gives the reasons."}}
    )
    def check_readiness(response: Response) -> Readiness:
        """200 if events can be taken and forecasts given, otherwise 503; those who are known learn why."""
        health = service.health(can_see)
        response.status_code = 200 if health.ready else 503
        return Readiness(ready=health.ready, errors=health.errors if current_user() else {})

    @routes.get("/v1/status")
    def get_status() -> Status:
        """The plant's time, the model that serves, what has been counted since the start, and how each part is."""
        health = service.health(can_see)
        return Status(
            **dict(service.status.read(current_sites())),
            plant_time=service.clock.now(),
            model_version=health.model_version,
            ready=health.ready,
            errors=health.errors,
            warnings=health.warnings,
            counts=health.counts,
        )

    return routes
