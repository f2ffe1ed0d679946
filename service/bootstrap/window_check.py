"""Whether the settings agree with the model that serves on how far forecasts look back and ahead."""

from datetime import timedelta

from forecasting.window import WindowSpec
from service.bootstrap.configuration import window_spec
from service.settings import Settings

_MINUTE = timedelta(minutes=1)


def window_conflict(settings: Settings, version: str, spec: WindowSpec) -> str | None:
    """Say what holds if settings and model differ, and what to do; None if they agree."""
    if window_spec(settings) == spec:
        return None
    lookback, horizon = f"{spec.lookback / _MINUTE:g}", f"{spec.horizon / _MINUTE:g}"
    return (
        f"The settings say lookback_minutes {settings.lookback_minutes} and horizon_minutes "
        f"{settings.horizon_minutes}, but {version} was learned with {lookback} and {horizon}, and those hold: "
        "forecasts are made with them, and no machine can be learned until the settings agree. Set "
        f"ALARMCAST_LOOKBACK_MINUTES={lookback} and ALARMCAST_HORIZON_MINUTES={horizon} again; for other lengths "
        "begin with an empty data folder and load the histories of all machines there."
    )
