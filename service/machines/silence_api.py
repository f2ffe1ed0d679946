"""Silent machines: those that should have spoken by their own rhythm and have not."""

from typing import TYPE_CHECKING

from fastapi import APIRouter

from wire.rest.silent import SilentFleet, SilentView

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the route of silent machines."""
    routes = APIRouter(tags=["machines"])

    @routes.get("/v1/silent")
    def list_silent_machines() -> SilentFleet:
        """Machines whose agents are online and whose alarms have stopped coming; judged every minute."""
        return SilentFleet(
            silent=[
                SilentView(
                    site=one.machine.site,
                    machine=one.machine.machine,
                    since=one.since,
                    overdue_hours=round(one.overdue_hours, 2),
                    usual_hours=round(one.usual_hours, 2),
                )
                for one in parts.silence.found
            ]
        )

    return routes
