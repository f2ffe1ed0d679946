"""Forecasts: of one machine, now or at a past moment, and why; and of the whole fleet."""

from datetime import datetime

from alarmcast.endpoint import Resource, TransportT, operation
from alarmcast.requests import MachineName, RequestSpec, path_params
from wire.forecasts import Forecast
from wire.rest.explanations import ExplanationView
from wire.rest.forecasts import FleetForecasts


class Forecasts(Resource[TransportT]):
    """``client.forecasts``."""

    @operation("GET /v1/machines/{site}/{machine}/forecast", Forecast)
    def get(self, machine: MachineName, *, at: datetime | None = None) -> RequestSpec:
        """Return what the machine is likely to raise in the next hours, or was likely to at a past moment."""
        return RequestSpec(at=path_params(machine), params={"at": at})

    @operation("GET /v1/machines/{site}/{machine}/explanation", ExplanationView)
    def explanation(
        self, machine: MachineName, *, at: datetime | None = None, code: int | None = None, parts: int = 6
    ) -> RequestSpec:
        """Return what drives the forecast away from what is usual for the machine, of one alarm or of all."""
        return RequestSpec(at=path_params(machine), params={"at": at, "code": code, "parts": parts})

    @operation("GET /v1/forecasts", FleetForecasts)
    def fleet(self) -> RequestSpec:
        """Return every machine's newest forecast, most urgent first."""
        return RequestSpec()
