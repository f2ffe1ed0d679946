"""Which likely alarm is looked at first: severity x probability x how far above usual."""

from collections.abc import Iterable
from typing import Final

from wire.forecasts import Forecast, ForecastLevel, LikelyAlarm, forecast_level

_WEIGHTS: Final = {"low": 1, "medium": 2, "high": 3}
_MAX_LIFT: Final = 5.0


def alarm_value(severity: str, probability: float, base_rate: float | None) -> float:
    """Return severity (1 to 3) x probability x (lift - 1); zero for the level usual.

    The lift counts up to 5, which a code that this machine never raised gets too. While the usual rate is
    unknown, the last factor is 1.
    """
    if forecast_level(probability, base_rate) is ForecastLevel.USUAL:
        return 0.0
    above = 1.0
    if base_rate is not None:
        above = (min(probability / base_rate, _MAX_LIFT) if base_rate else _MAX_LIFT) - 1
    return round(_WEIGHTS.get(severity, 1) * probability * max(above, 0.0), 4)


def highest_value(alarms: Iterable[LikelyAlarm]) -> float:
    """Return the value of the most valuable alarm."""
    return max((alarm_value(one.severity, one.probability, one.base_rate) for one in alarms), default=0.0)


def forecast_order(forecast: Forecast) -> tuple[float, float]:
    """Order forecasts: the most valuable alarm first, then the likeliest."""
    return (-highest_value(forecast.alarms), -max((one.probability for one in forecast.alarms), default=0.0))
