"""Forecasts: of one machine, now or at a past moment, and of the whole fleet, most urgent first."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool

from service.forecasts.cache import CachedForecast
from service.forecasts.service import urgency
from service.http.problems import responses
from service.http.request import MachineName, Site
from wire.codec import encode
from wire.forecasts import Forecast
from wire.identity import MachineId
from wire.rest.forecasts import FleetForecasts
from wire.timestamps import UtcDatetime

if TYPE_CHECKING:
    from service.app.api_services import AppServices

_JSON = "application/json"


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of forecasts."""
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
            past = await run_in_threadpool(parts.desk.forecast_at, identity, at)
            return Response(encode(past), media_type=_JSON)
        # Where the bytes are ready nobody comes as far as here: see ready.py.
        newest = await run_in_threadpool(_newest, parts, identity)
        return Response(newest.encoded, media_type=_JSON)

    @routes.get("/forecasts", responses=responses(503))
    def list_forecasts() -> FleetForecasts:
        """The fleet's newest forecasts, the machine with the likeliest expected alarm first."""
        newest = parts.newest.fresh_for(parts.machines.all())
        return FleetForecasts(forecasts=sorted((one.forecast for one in newest), key=urgency))

    return routes


def _newest(parts: "AppServices", machine: MachineId) -> CachedForecast:
    known = parts.machines.get(machine)
    known.require_active()
    return parts.newest.fresh_for([known])[0]
