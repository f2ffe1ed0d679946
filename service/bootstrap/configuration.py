"""Settings in, the values that the parts are given out."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from forecasting.window import WindowSpec
from service.core.enrolment import Curriculum
from service.errors import InputRejected
from service.flows.record_events import TimePolicy
from service.settings import Settings, unknown_variables
from wire.clock import PlantClock


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from the environment, with flags on top; a mistake is one sentence."""
    unknown = unknown_variables()
    if unknown:
        raise InputRejected(f"There is no setting {unknown[0]}; unset it or correct its name.")
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        raise InputRejected(f"The setting {name} (ALARMCAST_{name.upper()}) is wrong: {first['msg']}.") from None


def plant_clock(settings: Settings) -> PlantClock:
    """Return the plant's clock."""
    return PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)


def window_spec(settings: Settings) -> WindowSpec:
    """Return how far forecasts look back and ahead."""
    return WindowSpec(timedelta(minutes=settings.lookback_minutes), timedelta(minutes=settings.horizon_minutes))


def curriculum(settings: Settings) -> Curriculum:
    """Return how a machine's windows are shared out, and how many there must be."""
    return Curriculum(fewest=settings.min_training_windows, keep=timedelta(days=settings.retention_days))


def time_policy(settings: Settings) -> TimePolicy:
    """Return which event times are believed."""
    return TimePolicy(timedelta(minutes=settings.future_minutes), timedelta(days=settings.retention_days))


def sqlite_url(data_dir: Path) -> str:
    """Return where the database is unless another one is named."""
    return f"sqlite:///{data_dir.resolve() / 'alarmcast.sqlite3'}"
