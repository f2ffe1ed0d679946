"""Routes of forecasts, explanations and the fleet, and the fast path for cached forecasts."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from service.auth.middleware import CHECKED
from service.forecasts.alarm_value import forecast_order
from service.forecasts.cache import CachedForecast, ForecastCache
from service.forecasts.explanation import ExplanationService
from service.forecasts.fleet import FleetService, FleetSnapshot
from service.forecasts.service import ForecastService
from service.http.principal import current_sites
from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.api import unregistered_view
from service.machines.site_filter import SiteFilteredMachines
from wire.codec import encode
from wire.forecasts import Forecast
from wire.identity import ID_PATTERN, MachineId
from wire.rest.explanations import ExplanationView
from wire.rest.fleet import FleetOverview
from wire.rest.forecasts import FleetForecasts
from wire.timestamps import UtcDatetime

_JSON = "application/json"


def routers(
    machines: SiteFilteredMachines,
    service: ForecastService,
    cache: ForecastCache,
    explanations: ExplanationService,
    fleet: FleetService,
) -> list[APIRouter]:
    """Return all routes of this feature but the stream."""
    return [
        _forecast_routes(machines, service, cache),
        _explanation_routes(explanations),
        _fleet_routes(fleet),
    ]


def _forecast_routes(machines: SiteFilteredMachines, service: ForecastService, cache: ForecastCache) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["forecasts"])

    @routes.get(
        "/machines/{site}/{machine}/forecast", response_model=Forecast, responses=responses(404, 410, 422, 503)
    )
    async def get_forecast(
        site: Site,
        machine: MachineName,
        at: Annotated[UtcDatetime | None, Query(description="A past moment; now unless given.")] = None,
    ) -> Response:
        """What the machine is likely to raise in the next hours, or was likely to at a past moment."""
        identity = MachineId(site, machine)
        if at is not None:
            past = await run_in_threadpool(service.forecast_at, identity, at)
            return Response(encode(past), media_type=_JSON)
        # A fresh cached forecast is answered by ForecastFastPath.
        newest = await run_in_threadpool(_newest, machines, cache, identity)
        return Response(newest.encoded, media_type=_JSON)

    @routes.get("/forecasts", responses=responses(503))
    def list_forecasts() -> FleetForecasts:
        """The fleet's newest forecasts, ordered by severity x probability x how far above usual.

        A machine that has never connected is left out.
        """
        connected = service.machines.agents()
        newest = cache.fresh_for([machine for machine in machines.all() if machine.id in connected])
        return FleetForecasts(forecasts=sorted((one.forecast for one in newest), key=forecast_order))

    return routes


def _newest(machines: SiteFilteredMachines, cache: ForecastCache, machine_id: MachineId) -> CachedForecast:
    machine = machines.get(machine_id)
    machine.require_active()
    return cache.fresh_for([machine])[0]


def _explanation_routes(explanations: ExplanationService) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["forecasts"])

    @routes.get("/machines/{site}/{machine}/explanation", responses=responses(404, 410, 422, 503))
    def explain_forecast(
        site: Site,
        machine: MachineName,
        at: Annotated[
            UtcDatetime | None, Query(description="A past moment; the newest forecast unless given.")
        ] = None,
        code: Annotated[
            int | None,
            Query(ge=0, le=2**31 - 1, description="Of this alarm only; of all in the forecast unless given."),
        ] = None,
        most: Annotated[
            int,
            Query(
                alias="parts",
                ge=1,
                le=100,
                description="How many parts are named; smaller ones are one, `others`.",
            ),
        ] = 6,
    ) -> ExplanationView:
        """Why the forecast says what it says: parts that sum to its difference from what is usual here.

        `reading` says in one sentence how to read them.
        """
        identity = MachineId(site, machine)
        if at is None:
            why = explanations.now(identity, code=code, parts=most)
        else:
            why = explanations.past(identity, at, code=code, parts=most)
        return ExplanationView.model_validate(why, from_attributes=True)

    return routes


def _fleet_routes(fleet: FleetService) -> APIRouter:
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
        """Every machine in short: whether it is connected, what it raised, what it is likely to raise.

        A picture at most half a second old. While no model serves, `likely` is empty.
        """
        seen = fleet.overview(site=site, since=since, sites=current_sites())
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
        unregistered=[unregistered_view(other) for other in seen.unregistered],
        sites=seen.sites,
    ).model_dump_json(exclude={"cards"})
    cards = b",".join(kept.encoded for kept in seen.cards)
    return rest[:-1].encode() + b',"cards":[' + cards + b"]}"


PATH = "/v1/machines/{site}/{machine}/forecast"


@dataclass(frozen=True)
class ForecastFastPath:
    """ASGI middleware behind the guard, which has judged the request; whatever is not ready goes the usual way."""

    app: ASGIApp
    newest: ForecastCache
    route: BaseRoute  # whose answer it gives, and as which it is counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the router do it."""
        encoded = self._ready(scope)
        if encoded is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = self.route
        length = str(len(encoded)).encode()
        headers = [(b"content-length", length), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": encoded})

    def _ready(self, scope: Scope) -> bytes | None:
        if scope.get(CHECKED) != PATH or scope["query_string"]:
            return None
        *_, site, machine, _ = scope["path"].split("/")
        newest = self.newest.get_fresh(MachineId(site, machine))
        return None if newest is None else newest.encoded
