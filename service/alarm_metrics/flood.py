"""Floods: alarms that come faster than a person can take them in, after ISA-18.2 and EEMUA 191.

A flood is on once more than 10 alarms have come in the last ten minutes and over once fewer than 5 have. The
window slides with the alarms instead of following the clock, so a flood is not cut in two by ten past eight.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

WINDOW = timedelta(minutes=10)
STARTS_ABOVE, ENDS_BELOW = 10, 5
_WINDOW_US = WINDOW // timedelta(microseconds=1)


@dataclass(frozen=True)
class Flood:
    """Alarms in ``[start_us, end_us)``; ``peak`` is the most of them that fell within ten minutes.

    It starts with the first of the alarms that made it a flood and ends at the moment when fewer than 5 are
    younger than ten minutes; so a lone burst lasts ten minutes longer than its alarms.
    """

    start_us: int
    end_us: int
    alarms: int
    peak: int
    top_code: int


def within_window(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each alarm how many came in the ten minutes up to it, itself and its equals included."""
    return _younger(times, times)


def floods(series: AlarmSeries) -> list[Flood]:
    """Return the floods of one machine, in time order and apart from each other."""
    times = series.times
    counts = within_window(times)
    hot = times[counts > STARTS_ABOVE]
    leaving = times + _WINDOW_US  # only when an alarm leaves the window can it fall below
    calm = leaving[_younger(times, leaving) < ENDS_BELOW]
    found: list[Flood] = []
    end = np.iinfo(np.int64).min
    while (place := int(np.searchsorted(hot, end))) < len(hot):
        # The youngest alarm of all leaves an empty window, so a flood always has an end.
        start, end = hot[place], calm[np.searchsorted(calm, hot[place], "right")]
        before = found[-1].end_us if found else np.iinfo(np.int64).min
        first = max(np.searchsorted(times, start - _WINDOW_US, "right"), np.searchsorted(times, before))
        last = np.searchsorted(times, end)
        codes, of_each = np.unique(series.codes[first:last], return_counts=True)
        found.append(
            Flood(
                start_us=int(times[first]),
                end_us=int(end),
                alarms=int(last - first),
                peak=int(counts[first:last].max()),
                top_code=int(codes[of_each.argmax()]),
            )
        )
    return found


def _younger(times: NDArray[np.int64], moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many alarms came in ``(moment - 10 min, moment]``, for each moment."""
    later = np.searchsorted(times, moments, "right")
    return np.asarray(later - np.searchsorted(times, moments - _WINDOW_US, "right"), dtype=np.int64)
