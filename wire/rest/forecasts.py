"""Forecasts of the fleet."""

from pydantic import BaseModel

from wire.forecasts import Forecast


class FleetForecasts(BaseModel):
    """Every machine's newest forecast, most urgent first."""

    forecasts: list[Forecast]
