"""One machine's alarms to tallies that add up over machines: rate, peaks, floods, chatter, standing alarms."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries
from service.alarm_metrics.chatter import Burst, bursts, by_code, chattering
from service.alarm_metrics.flood import WINDOW, Flood, floods, within_window
from service.alarm_metrics.standing import StandingAlarm, standing
from service.alarm_metrics.time_bins import TimeBins
from wire.enums import RateBand


@dataclass(frozen=True)
class AlarmCounts:
    """What is counted; ``watched_us`` and ``flood_us`` are the time of machines, ``peak`` is of one machine.

    A single code has no floods: they are made of whatever comes.
    """

    alarms: int = 0
    machines: int = 0
    monitored_us: int = 0
    peak: int = 0
    floods: int | None = 0
    flood_us: int | None = 0
    in_floods: int = 0
    chattering: int = 0
    standing: int = 0

    def __add__(self, other: "AlarmCounts") -> "AlarmCounts":
        return AlarmCounts(
            self.alarms + other.alarms,
            self.machines + other.machines,
            self.monitored_us + other.monitored_us,
            max(self.peak, other.peak),
            None if self.floods is None or other.floods is None else self.floods + other.floods,
            None if self.flood_us is None or other.flood_us is None else self.flood_us + other.flood_us,
            self.in_floods + other.in_floods,
            self.chattering + other.chattering,
            self.standing + other.standing,
        )

    @property
    def alarms_per_day(self) -> float | None:
        """Alarms a day and machine, or None where too little was watched."""
        return alarms_per_day(self.alarms, self.monitored_us)

    @property
    def band(self) -> RateBand | None:
        """The band of the rate; a single code's share of the rate has none."""
        rate = self.alarms_per_day
        return None if rate is None or self.floods is None else band(rate)

    @property
    def flood_share(self) -> float | None:
        """The share of the watched time in which there was a flood."""
        return (
            None if self.flood_us is None or not self.monitored_us else min(1.0, self.flood_us / self.monitored_us)
        )


class MachineAlarms:
    """A machine's alarms and what they make; from a lead before the span, so that what began earlier is known."""

    def __init__(self, series: AlarmSeries) -> None:
        self.series = series

    @cached_property
    def floods(self) -> list[Flood]:
        """Every flood, in time order."""
        return floods(self.series)

    @cached_property
    def chatters(self) -> NDArray[np.bool_]:
        """For each alarm whether it chatters."""
        return chattering(self.series)

    @cached_property
    def bursts(self) -> list[Burst]:
        """Every burst of chatter, in time order."""
        return bursts(self.series, self.chatters)

    @cached_property
    def standing(self) -> list[StandingAlarm]:
        """Every standing alarm, the longest first."""
        return standing(self.series)

    @cached_property
    def in_flood(self) -> NDArray[np.bool_]:
        """For each alarm whether it fell into a flood."""
        starts, ends = self.flood_edges
        return np.searchsorted(starts, self.series.times, "right") > np.searchsorted(
            ends, self.series.times, "right"
        )

    @cached_property
    def flood_edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The starts and the ends of all floods."""
        edges = np.array([(one.start_us, one.end_us) for one in self.floods], dtype=np.int64).reshape(-1, 2)
        return edges[:, 0], edges[:, 1]

    def moments_of(self, run: StandingAlarm) -> NDArray[np.int64]:
        """Return when a standing alarm was raised."""
        first, last = np.searchsorted(self.series.times, [run.first_us, run.last_us + 1])
        times, codes = self.series.times[first:last], self.series.codes[first:last]
        return np.asarray(times[codes == run.code], dtype=np.int64)


def count_by_slice(
    seen: MachineAlarms, slices: TimeBins, watched: tuple[int, int]
) -> Iterator[tuple[int, AlarmCounts]]:
    """Yield what each group of slices comes to; alarms count wherever they fall, time only while watched.

    A flood and a standing alarm count in every group that they touch, and once in the total.
    """
    groups, numbers = np.unique(slices.groups, return_inverse=True)
    slices = TimeBins(slices.starts, slices.ends, numbers)
    size = len(groups)
    of_alarm = slices.groups_at(seen.series.times)
    inside = of_alarm >= 0
    of_alarm = of_alarm[inside]
    alarms = np.bincount(of_alarm, minlength=size)
    loud = np.bincount(of_alarm[seen.chatters[inside]], minlength=size)
    flooded = np.bincount(of_alarm[seen.in_flood[inside]], minlength=size)
    peaks = np.zeros(size, dtype=np.int64)
    np.maximum.at(peaks, of_alarm, within_window(seen.series.times)[inside])
    heard = slices.clipped(*watched)
    times, wet = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    np.add.at(times, heard.groups, heard.ends - heard.starts)
    flood_counts, standing_counts = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for flood in seen.floods:
        flood_counts[np.unique(slices.clipped(flood.start_us, flood.end_us).groups)] += 1
        parts = heard.clipped(flood.start_us, flood.end_us)
        np.add.at(wet, parts.groups, parts.ends - parts.starts)
    for run in seen.standing:
        touched = np.unique(slices.groups_at(seen.moments_of(run)))
        standing_counts[touched[touched >= 0]] += 1
    table = (alarms, alarms > 0, times, peaks, flood_counts, wet, flooded, loud, standing_counts)
    for group, row in zip(groups.tolist(), np.stack(table, axis=1).tolist(), strict=True):
        yield group, AlarmCounts(*row)


def count_by_code(seen: MachineAlarms, slices: TimeBins) -> Iterator[tuple[int, AlarmCounts]]:
    """Yield what each code comes to; the time watched is left to whoever knows the whole."""
    series = seen.series
    inside = slices.bin_index(series.times) >= 0
    codes, numbers = np.unique(series.codes[inside], return_inverse=True)
    size = len(codes)
    alarms = np.bincount(numbers, minlength=size)
    loud = np.bincount(numbers[seen.chatters[inside]], minlength=size)
    flooded = np.bincount(numbers[seen.in_flood[inside]], minlength=size)
    peaks = np.zeros(size, dtype=np.int64)
    np.maximum.at(peaks, numbers, _of_own_code(series)[inside])
    lasting: dict[int, int] = {}
    for run in seen.standing:
        if (slices.bin_index(seen.moments_of(run)) >= 0).any():
            lasting[run.code] = lasting.get(run.code, 0) + 1
    blank = AlarmCounts(machines=1, floods=None, flood_us=None)
    for place, code in enumerate(codes.tolist()):
        yield (
            code,
            replace(
                blank,
                alarms=int(alarms[place]),
                peak=int(peaks[place]),
                in_floods=int(flooded[place]),
                chattering=int(loud[place]),
                standing=lasting.get(code, 0),
            ),
        )


def _of_own_code(series: AlarmSeries) -> NDArray[np.int64]:
    """Return for each alarm how many of its own code came in the ten minutes up to it."""
    order = by_code(series)
    if not len(order):
        return order
    times, codes = series.times[order], series.codes[order]
    # Each code is moved to a stretch of time of its own, so far from the others that no window reaches them.
    stretch = int(times.max() - times.min()) + 2 * WINDOW // timedelta(microseconds=1)
    ranks = np.cumsum(np.append(0, codes[1:] != codes[:-1]))
    counts = np.empty(len(order), dtype=np.int64)
    counts[order] = within_window(times - times.min() + ranks * stretch)
    return counts


ACCEPTABLE_UP_TO, EXCESSIVE_FROM = 150, 300
LEAST_TIME = timedelta(minutes=30)
_MICROSECOND, _DAY = timedelta(microseconds=1), timedelta(days=1)


def alarms_per_day(alarms: int, watched_us: int) -> float | None:
    """Return the alarms of a machine in 24 hours, or None where it was watched for less than half an hour."""
    if watched_us < LEAST_TIME // _MICROSECOND:
        return None
    return alarms * (_DAY // _MICROSECOND) / watched_us


def band(rate: float) -> RateBand:
    """Return the band of so many alarms a day."""
    if rate <= ACCEPTABLE_UP_TO:
        return RateBand.ACCEPTABLE
    return RateBand.MANAGEABLE if rate < EXCESSIVE_FROM else RateBand.EXCESSIVE
