"""A forecast as everybody receives it: over REST, on the page and retained on MQTT for an HMI."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from wire.events import Code, WireModel
from wire.identity import Identifier
from wire.timestamps import UtcDatetime

Share = Annotated[float, Field(ge=0.0, le=1.0)]


EXAMPLE_FORECAST: Final[dict[str, Any]] = {
    "site": "padova",
    "machine": "filler-1",
    "as_of": "2026-11-16T08:07:00.000Z",
    "window_start": "2026-11-15T03:27:00.000Z",
    "window_end": "2026-11-16T08:07:00.000Z",
    "horizon_end": "2026-11-16T16:07:00.000Z",
    "events_seen": 27,
    "coverage": 1.0,
    "model_version": "v3",
    "learned": True,
    "hindsight": False,
    "status": "ok",
    "alarms": [
        {
            "code": 139,
            "text": "Film torn",
            "severity": "high",
            "probability": 0.8124,
            "base_rate": 0.2708,
            "threshold": 0.5,
            "expected": True,
            "level": "expected",
            "within": {"2h": 0.4211, "8h": 0.8124, "24h": 0.9302},
        }
    ],
}


class ForecastStatus(StrEnum):
    """How far a forecast may be trusted."""

    OK = "ok"
    WARMING_UP = "warming_up"  # less than half of the evidence window is covered
    STALE = "stale"  # the agent is offline or has been silent too long


class ForecastLevel(StrEnum):
    """How a probability compares with a half and with what is usual for the machine."""

    EXPECTED = "expected"  # more likely than not
    ELEVATED = "elevated"  # at least twice the base rate, and at least 0.1
    USUAL = "usual"


EXPECTED_FROM: Final = 0.5
_ELEVATED_FROM: Final = 0.1
_ELEVATED_LIFT: Final = 2.0


def forecast_level(probability: float, base_rate: float | None) -> ForecastLevel:
    """Return the level of a calibrated probability; without a base rate nothing is elevated."""
    if probability >= EXPECTED_FROM:
        return ForecastLevel.EXPECTED
    if base_rate is not None and probability >= max(_ELEVATED_FROM, _ELEVATED_LIFT * base_rate):
        return ForecastLevel.ELEVATED
    return ForecastLevel.USUAL


class LikelyAlarm(WireModel):
    """One target code: how likely it is to come within the horizon, beside how likely it usually is."""

    code: Code
    text: str
    severity: str
    probability: Share = Field(description="That the alarm is raised at least once within the horizon.")
    base_rate: Share | None = Field(
        description="How often this machine's past horizons held the alarm; null while it has no past."
    )
    threshold: Share = Field(description="From this probability on the alarm is expected: 0.5.")
    expected: bool = Field(description="Whether the alarm is more likely than not.")
    level: ForecastLevel | None = Field(
        default=None,
        exclude_if=lambda level: level is None,
        description="expected: at least 0.5; elevated: at least 0.1 and twice the base rate; usual: all else.",
    )
    within: dict[str, Share] | None = Field(
        default=None,
        exclude_if=lambda within: within is None,
        description="The probability within each of three horizons, the shortest first. It never decreases; the "
        "middle one is that of ``probability``.",
    )


class Forecast(WireModel):
    """What a machine is likely to raise in ``[as_of, horizon_end)``, most likely first."""

    model_config = ConfigDict(protected_namespaces=(), json_schema_extra={"examples": [EXAMPLE_FORECAST]})

    site: Identifier
    machine: Identifier
    as_of: UtcDatetime
    window_start: UtcDatetime = Field(description="Evidence is everything in [window_start, window_end).")
    window_end: UtcDatetime
    horizon_end: UtcDatetime
    events_seen: int = Field(ge=0, description="Events in the evidence window.")
    coverage: Share = Field(description="Share of the evidence window in which the machine was observed.")
    model_version: str
    learned: bool = Field(
        default=True,
        description="False while the model has not learned this machine: the fleet's model speaks for it.",
    )
    hindsight: bool = Field(
        default=False,
        description="True if the model was not yet serving at as_of, so it may know the future.",
    )
    status: ForecastStatus
    alarms: list[LikelyAlarm]


class PublishedForecast(Forecast):
    """A forecast as MQTT has it: where the whole is too large for a message, the most relevant alarms of it."""

    omitted: int = Field(default=0, ge=0, description="Less relevant alarms left out; REST has them all.")
