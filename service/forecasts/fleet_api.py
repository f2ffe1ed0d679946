"""The fleet at a glance: every machine's card, most urgent first, or only the cards that changed."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Response

from service.forecasts.fleet import FleetSnapshot
from service.http.problems import responses
from service.machines import api as machines
from wire.identity import ID_PATTERN
from wire.rest.fleet import FleetOverview

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the route of the fleet."""
    routes = APIRouter(prefix="/v1", tags=["machines"])

    @routes.get("/fleet", response_model=FleetOverview, responses=responses(422, 503))
    def get_fleet(
        site: Annotated[str | None, Query(pattern=ID_PATTERN, description="Of this plant only.")] = None,
        since: Annotated[
            str | None,
            Query(
                max_length=100,
                description="`revision` of an earlier answer: only cards that changed since. One that is too old, "
                "or of before a restart, gets everything, with `complete` true.",
            ),
        ] = None,
    ) -> Response:
        """Every machine in short: whether it is heard, what it raised, what it is likely to raise.

        A picture at most half a second old. While no model serves, `likely` is empty.
        """
        seen = parts.fleet.overview(site=site, since=since)
        return Response(_encoded(seen), media_type="application/json")

    return routes


def _encoded(seen: FleetSnapshot) -> bytes:
    """Join the cards' bytes, which are ready, instead of writing hundreds of cards for everybody who asks."""
    rest = FleetOverview(
        revision=seen.revision,
        complete=seen.complete,
        plant_time=seen.plant_time,
        model_version=seen.model_version,
        cards=[],
        gone=[str(machine) for machine in seen.gone],
        unregistered=[machines.knock_view(knock) for knock in seen.knocking],
        sites=seen.sites,
    ).model_dump_json(exclude={"cards"})
    cards = b",".join(kept.encoded for kept in seen.cards)
    return rest[:-1].encode() + b',"cards":[' + cards + b"]}"
