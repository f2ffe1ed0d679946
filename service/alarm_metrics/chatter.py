"""Chatter: one code that comes three times or more within a minute, after ISA-18.2."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

WITHIN = timedelta(minutes=1)
FEWEST = 3
_WITHIN_US = WITHIN // timedelta(microseconds=1)


@dataclass(frozen=True)
class Burst:
    """Chattering alarms of one code with less than a minute between each and the next."""

    code: int
    first_us: int
    last_us: int
    alarms: int


def chattering(series: AlarmSeries) -> NDArray[np.bool_]:
    """Return for each alarm whether it is one of three or more of its code within less than a minute."""
    order = by_code(series)
    times, codes = series.times[order], series.codes[order]
    found = np.zeros(len(series), dtype=np.bool_)
    reach = FEWEST - 1
    if len(times) > reach:
        close = (codes[reach:] == codes[:-reach]) & (times[reach:] - times[:-reach] < _WITHIN_US)
        for step in range(FEWEST):  # every alarm from the first to the last of such a group
            found[order[step : len(order) - reach + step][close]] = True
    return found


def bursts(series: AlarmSeries, chatters: NDArray[np.bool_]) -> list[Burst]:
    """Return the bursts that the chattering alarms of one machine make, in time order."""
    loud = AlarmSeries(series.times[chatters], series.codes[chatters])
    order = by_code(loud)
    times, codes = loud.times[order], loud.codes[order]
    starts = run_starts(times, codes, _WITHIN_US - 1)
    ends = np.append(starts[1:], len(times))[: len(starts)]
    found = [
        Burst(int(codes[first]), int(times[first]), int(times[end - 1]), end - first)
        for first, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return sorted(found, key=lambda burst: (burst.first_us, burst.code))


def by_code(series: AlarmSeries) -> NDArray[np.int64]:
    """Return the order in which alarms stand by code, those of one code by time."""
    return np.asarray(np.argsort(series.codes, kind="stable"), dtype=np.int64)


def run_starts(times: NDArray[np.int64], codes: NDArray[np.int64], longest_us: int) -> NDArray[np.int64]:
    """Return where, in alarms ordered by code, a code changes or pauses for longer than ``longest_us``."""
    fresh = np.ones(len(times), dtype=np.bool_)
    fresh[1:] = (codes[1:] != codes[:-1]) | (times[1:] - times[:-1] > longest_us)
    return np.flatnonzero(fresh)
