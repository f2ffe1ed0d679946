"""Forecasts of the fleet."""

from pydantic import BaseModel, ConfigDict

from wire.forecasts import EXAMPLE_FORECAST, Forecast


class FleetForecasts(BaseModel):
    """Every machine's newest forecast, most urgent first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"forecasts": [EXAMPLE_FORECAST]}]})

    forecasts: list[Forecast]
