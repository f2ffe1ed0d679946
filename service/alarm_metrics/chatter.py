"""Chattering alarms (ISA-18.2) and standing alarms.

Chattering: one code at least three times within a minute.

Standing alarms replace ISA-18.2's *stale* alarms (active for more than 24 hours) of machines that do not report
clears: a code that is raised for more than 24 hours without a pause of more than an hour counts as standing.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

CHATTER_WINDOW = timedelta(minutes=1)
MIN_CHATTER_ALARMS = 3
MIN_STANDING = timedelta(hours=24)
MAX_STANDING_PAUSE = timedelta(hours=1)
LEAD = MIN_STANDING + 2 * MAX_STANDING_PAUSE  # read this much before a span to know what stands at its start
_MICROSECOND = timedelta(microseconds=1)
_CHATTER_US = CHATTER_WINDOW // _MICROSECOND
_STANDING_US, _PAUSE_US = MIN_STANDING // _MICROSECOND, MAX_STANDING_PAUSE // _MICROSECOND


@dataclass(frozen=True)
class CodeRun:
    """Alarms of one code without a long pause: a chattering period or a standing alarm."""

    code: int
    first_us: int
    last_us: int
    alarms: int


def is_chattering(series: AlarmSeries) -> NDArray[np.bool_]:
    """Return for each alarm whether it is one of three or more of its code within less than a minute."""
    order = order_by_code(series)
    times, codes = series.times[order], series.codes[order]
    chatters = np.zeros(len(series), dtype=np.bool_)
    reach = MIN_CHATTER_ALARMS - 1
    if len(times) > reach:
        close = (codes[reach:] == codes[:-reach]) & (times[reach:] - times[:-reach] < _CHATTER_US)
        for step in range(MIN_CHATTER_ALARMS):  # every alarm from the first to the last of such a group
            chatters[order[step : len(order) - reach + step][close]] = True
    return chatters


def find_bursts(series: AlarmSeries, chatters: NDArray[np.bool_]) -> list[CodeRun]:
    """Return the chattering periods of one machine, in time order; a minute without the code ends one."""
    runs = _runs(AlarmSeries(series.times[chatters], series.codes[chatters]), _CHATTER_US - 1)
    return sorted(runs, key=lambda run: (run.first_us, run.code))


def find_standing(series: AlarmSeries) -> list[CodeRun]:
    """Return the standing alarms of one machine, the longest first."""
    runs = _runs(series, _PAUSE_US, longer_than_us=_STANDING_US)
    return sorted(runs, key=lambda run: (run.first_us - run.last_us, run.code))


def order_by_code(series: AlarmSeries) -> NDArray[np.int64]:
    """Return the indices that sort alarms by code, then by time."""
    return np.asarray(np.argsort(series.codes, kind="stable"), dtype=np.int64)


def _runs(series: AlarmSeries, max_pause_us: int, *, longer_than_us: int = -1) -> list[CodeRun]:
    """Return the runs of each code without a pause longer than ``max_pause_us``."""
    order = order_by_code(series)
    times, codes = series.times[order], series.codes[order]
    opens = np.ones(len(times), dtype=np.bool_)
    opens[1:] = (codes[1:] != codes[:-1]) | (times[1:] - times[:-1] > max_pause_us)
    starts = np.flatnonzero(opens)
    lasts = np.append(starts[1:], len(times))[: len(starts)] - 1
    long = times[lasts] - times[starts] > longer_than_us
    return [
        CodeRun(int(codes[first]), int(times[first]), int(times[last]), last - first + 1)
        for first, last in zip(starts[long].tolist(), lasts[long].tolist(), strict=True)
    ]
