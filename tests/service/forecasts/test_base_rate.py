"""Base rates of many moments at once are what counting one by one gives."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forecasting.series import AlarmSeries
from forecasting.window import grid
from service.forecasts.base_rates import LOOKBACK, base_rates
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = timedelta(hours=1)
HORIZON = 8 * HOUR
CODES = (26, 139)


def by_hand(series: AlarmSeries, first: datetime, at: datetime) -> list[float]:
    seen = series.between(at - LOOKBACK, at)
    starts = list(grid(max(first, at - LOOKBACK), at - HORIZON, HOUR))
    if not starts or len(seen) == 0:
        return [float("nan")] * len(CODES)
    held = [[code in seen.between(start, start + HORIZON).codes for code in CODES] for start in starts]
    return [float(rate) for rate in np.mean(held, axis=0)]


@pytest.mark.parametrize("first_days_ago", [100, 30, 0.5, 0.1])
def test_every_moment_gets_the_rate_of_the_horizons_that_had_closed_by_then(first_days_ago: float) -> None:
    rng = np.random.default_rng(3)
    first = AT - timedelta(days=first_days_ago)
    minutes = rng.integers(0, int(first_days_ago * 1440) + 1440, size=60)
    alarms = [(first + timedelta(minutes=int(m)), int(rng.choice([26, 137, 139]))) for m in minutes]
    series = AlarmSeries.from_alarms([(first, 137), *alarms])
    moments = [AT - 20 * HOUR, AT - timedelta(minutes=45), AT, AT + 13 * HOUR]
    at = np.array([to_us(one) for one in moments])
    horizon = HORIZON // timedelta(microseconds=1)
    rates = base_rates(series, to_us(first), at, horizon, np.array(CODES))
    expected = [by_hand(series, first, one) for one in moments]
    assert np.allclose(rates, expected, equal_nan=True)


def test_after_ninety_silent_days_there_is_no_rate() -> None:
    series = AlarmSeries.from_alarms([(AT - timedelta(days=91), 139)])
    assert np.isnan(base_rates(series, to_us(AT) - 91 * 86_400_000_000, np.array([to_us(AT)]), 1, np.array([139])))
