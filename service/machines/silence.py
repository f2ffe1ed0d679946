"""Has a machine fallen silent? Judged by its own rhythm, in time that passes only when it usually speaks.

An hour of the week in which a machine nearly always raises an alarm counts as an hour, one in which it never
does counts as none. In this time a night and a weekend are short, so the longest pause a machine has ever made
is a fair measure of what is no longer a pause.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries
from wire.timestamps import to_us

LOOKBACK = timedelta(days=56)
_HOUR = 3_600_000_000
_WEEK = 168
_LEAST_ALARMS, _LEAST_DAYS = 30, 3
_BEYOND = 1.5  # times the longest pause there was
_LEAST = 2.0  # working hours that are never a silence


@dataclass(frozen=True)
class ActivityProfile:
    """How likely a machine speaks in each hour of the week, and its longest pause in working hours."""

    shares: NDArray[np.float64]
    longest_pause: float

    @property
    def silence_threshold_h(self) -> float:
        """The working hours after which a pause is a silence."""
        return max(_LEAST, _BEYOND * self.longest_pause)

    def working_hours(self, start: datetime, end: datetime) -> float:
        """Return how many working hours lie between two moments."""
        worked = _active_time(self.shares, np.array([to_us(start), to_us(end)]))
        return float(worked[1] - worked[0])


def fit_profile(series: AlarmSeries, now: datetime) -> ActivityProfile | None:
    """Return a machine's rhythm from its alarms up to ``now``, or None while too little is known."""
    if len(series) < _LEAST_ALARMS:
        return None
    first, last = int(series.times[0]), int(series.times[-1])
    if last - first < _LEAST_DAYS * 24 * _HOUR:
        return None
    hours = np.arange(first // _HOUR, min(last, to_us(now)) // _HOUR + 1)
    spoke = np.isin(hours, series.times // _HOUR)
    slots = hours % _WEEK
    seen = np.bincount(slots, minlength=_WEEK)
    held = np.bincount(slots[spoke], minlength=_WEEK)
    # Within the first weeks an hour of the week has been seen once or twice; the mean steadies what it says.
    mean = spoke.mean()
    shares = (held + mean) / (seen + 1)
    worked = _active_time(shares, series.times)
    return ActivityProfile(shares, float(np.diff(worked).max(initial=0.0)))


def _active_time(shares: NDArray[np.float64], times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the working hours that have passed at each moment since some beginning."""
    hours = times // _HOUR
    before = np.concatenate([[0.0], np.cumsum(shares)])
    weeks, slots = np.divmod(hours, _WEEK)
    within = before[slots] + shares[slots] * ((times - hours * _HOUR) / _HOUR)
    return np.asarray(weeks * before[-1] + within, dtype=np.float64)
