"""Alarm floods (ISA-18.2, EEMUA 191).

A flood starts when more than 10 alarms came in the last ten minutes and ends when fewer than 5 did. The window
slides with the alarms, so that a clock boundary never splits a flood.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

WINDOW = timedelta(minutes=10)
START_ABOVE, END_BELOW = 10, 5
_WINDOW_US = WINDOW // timedelta(microseconds=1)


@dataclass(frozen=True)
class Flood:
    """Alarms in ``[start_us, end_us)``; ``peak`` is the highest count within ten minutes.

    It starts with the first alarm of the window that made it a flood and ends when fewer than 5 alarms are
    younger than ten minutes; so it lasts up to ten minutes longer than its alarms.
    """

    start_us: int
    end_us: int
    alarms: int
    peak: int
    top_code: int


def count_last_10min(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each alarm how many came in the ten minutes up to it, itself included."""
    return _count_before(times, times)


def find_floods(series: AlarmSeries) -> list[Flood]:
    """Return the floods of one machine in time order; they do not overlap."""
    times = series.times
    counts = count_last_10min(times)
    above = times[counts > START_ABOVE]
    leaving = times + _WINDOW_US  # the count drops only when an alarm leaves the window
    below = leaving[_count_before(times, leaving) < END_BELOW]
    floods: list[Flood] = []
    end = np.iinfo(np.int64).min
    while (index := int(np.searchsorted(above, end))) < len(above):
        # The last alarm leaves an empty window, so a flood always has an end.
        start, end = above[index], below[np.searchsorted(below, above[index], "right")]
        previous_end = floods[-1].end_us if floods else np.iinfo(np.int64).min
        first = max(np.searchsorted(times, start - _WINDOW_US, "right"), np.searchsorted(times, previous_end))
        last = np.searchsorted(times, end)
        codes, code_counts = np.unique(series.codes[first:last], return_counts=True)
        floods.append(
            Flood(
                start_us=int(times[first]),
                end_us=int(end),
                alarms=int(last - first),
                peak=int(counts[first:last].max()),
                top_code=int(codes[code_counts.argmax()]),
            )
        )
    return floods


def _count_before(times: NDArray[np.int64], moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each moment how many alarms came in ``(moment - 10 min, moment]``."""
    until = np.searchsorted(times, moments, "right")
    return np.asarray(until - np.searchsorted(times, moments - _WINDOW_US, "right"), dtype=np.int64)
