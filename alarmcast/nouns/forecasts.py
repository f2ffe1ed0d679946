"""Forecasts: of one machine, now or at a past moment, and why; and of the whole fleet."""

from datetime import datetime

from alarmcast.call import Ask, MachineName, named
from alarmcast.endpoint import Noun, S, operation
from wire.forecasts import Forecast
from wire.rest.explanations import ExplanationView
from wire.rest.forecasts import FleetForecasts


class Forecasts(Noun[S]):
    """``client.forecasts``."""

    @operation("GET /v1/machines/{site}/{machine}/forecast", Forecast)
    def of(self, machine: MachineName, *, at: datetime | None = None) -> Ask:
        """Return what the machine is likely to raise in the next hours, or was likely to at a past moment."""
        return Ask(at=named(machine), params={"at": at})

    @operation("GET /v1/machines/{site}/{machine}/explanation", ExplanationView)
    def why(
        self, machine: MachineName, *, at: datetime | None = None, code: int | None = None, parts: int = 6
    ) -> Ask:
        """Return what drives the forecast away from what is usual for the machine, of one alarm or of all."""
        return Ask(at=named(machine), params={"at": at, "code": code, "parts": parts})

    @operation("GET /v1/forecasts", FleetForecasts)
    def fleet(self) -> Ask:
        """Return every machine's newest forecast, most urgent first."""
        return Ask()
