"""Alarm counts that can be summed over machines: rate, peak, floods, chattering and standing alarms."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries
from service.alarm_metrics.chatter import CodeRun, find_bursts, find_standing, is_chattering, order_by_code
from service.alarm_metrics.flood import WINDOW, Flood, count_last_10min, find_floods
from service.alarm_metrics.time_bins import TimeBins
from wire.enums import RateBand
from wire.identity import MachineId

# Alarms per day. ISA-18.2 counts what one operator gets; here each machine stands for one.
ACCEPTABLE_UP_TO, EXCESSIVE_FROM = 150, 300
MIN_MONITORED = timedelta(minutes=30)
_MICROSECOND, _DAY = timedelta(microseconds=1), timedelta(days=1)


class ExcludedSpan(NamedTuple):
    """A code of a machine that is not counted in ``[start_us, end_us)``, because it was shelved."""

    machine: MachineId
    code: int
    start_us: int
    end_us: int


def exclude(series: AlarmSeries, machine: MachineId, spans: Iterable[ExcludedSpan]) -> AlarmSeries:
    """Return the alarms of a machine without those in the excluded spans."""
    keep = np.ones(len(series), dtype=np.bool_)
    for span in spans:
        if span.machine == machine:
            first, last = np.searchsorted(series.times, [span.start_us, span.end_us])
            keep[first:last] &= series.codes[first:last] != span.code
    return series if keep.all() else AlarmSeries(series.times[keep], series.codes[keep])


def alarms_per_day(alarms: int, monitored_us: int) -> float | None:
    """Return the alarms of a machine in 24 hours, or None if it was monitored for less than half an hour."""
    if monitored_us < MIN_MONITORED // _MICROSECOND:
        return None
    return alarms * (_DAY // _MICROSECOND) / monitored_us


def rate_band(rate: float) -> RateBand:
    """Return the ISA-18.2 band of a rate in alarms per day."""
    if rate <= ACCEPTABLE_UP_TO:
        return RateBand.ACCEPTABLE
    return RateBand.MANAGEABLE if rate < EXCESSIVE_FROM else RateBand.EXCESSIVE


@dataclass(frozen=True)
class AlarmCounts:
    """``monitored_us`` and ``flood_us`` are summed over machines; ``peak`` is the highest of one machine.

    Floods are None for a single code. What follows ``standing`` is None where no machine reports clears or stops.
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
    stale: int | None = None
    active: int | None = None
    downtime_us: int | None = None

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
            _sum(self.stale, other.stale),
            _sum(self.active, other.active),
            _sum(self.downtime_us, other.downtime_us),
        )

    @property
    def alarms_per_day(self) -> float | None:
        return alarms_per_day(self.alarms, self.monitored_us)

    @property
    def band(self) -> RateBand | None:
        """The band of the rate; None for a single code."""
        rate = self.alarms_per_day
        return None if rate is None or self.floods is None else rate_band(rate)

    @property
    def flood_share(self) -> float | None:
        """The share of the monitored time that was in a flood."""
        if self.flood_us is None or not self.monitored_us:
            return None
        return min(1.0, self.flood_us / self.monitored_us)


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other


class MachineAlarms:
    """Alarms of a machine, from :data:`LEAD` before a span on, with floods, bursts and standing alarms."""

    def __init__(self, series: AlarmSeries) -> None:
        self.series = series

    @cached_property
    def floods(self) -> list[Flood]:
        return find_floods(self.series)

    @cached_property
    def chatters(self) -> NDArray[np.bool_]:
        """For each alarm whether it chatters."""
        return is_chattering(self.series)

    @cached_property
    def bursts(self) -> list[CodeRun]:
        return find_bursts(self.series, self.chatters)

    @cached_property
    def standing(self) -> list[CodeRun]:
        return find_standing(self.series)

    @cached_property
    def in_flood(self) -> NDArray[np.bool_]:
        """For each alarm whether it is in a flood."""
        starts, ends = self.flood_edges
        return np.searchsorted(starts, self.series.times, "right") > np.searchsorted(
            ends, self.series.times, "right"
        )

    @cached_property
    def flood_edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The starts and the ends of all floods."""
        edges = np.array([(flood.start_us, flood.end_us) for flood in self.floods], dtype=np.int64).reshape(-1, 2)
        return edges[:, 0], edges[:, 1]

    def times_of(self, run: CodeRun) -> NDArray[np.int64]:
        """Return the times at which a standing alarm was raised."""
        first, last = np.searchsorted(self.series.times, [run.first_us, run.last_us + 1])
        times, codes = self.series.times[first:last], self.series.codes[first:last]
        return np.asarray(times[codes == run.code], dtype=np.int64)


def count_by_group(
    alarms: MachineAlarms, bins: TimeBins, monitored: tuple[int, int]
) -> Iterator[tuple[int, AlarmCounts]]:
    """Yield the counts of each group of bins; alarms count anywhere, time only in the monitored span.

    A flood and a standing alarm count in every group that they overlap, and once in the total.
    """
    groups, group_index = np.unique(bins.groups, return_inverse=True)
    bins = TimeBins(bins.starts, bins.ends, group_index)
    size = len(groups)
    alarm_group = bins.groups_at(alarms.series.times)
    inside = alarm_group >= 0
    alarm_group = alarm_group[inside]
    counts = np.bincount(alarm_group, minlength=size)
    chattering = np.bincount(alarm_group[alarms.chatters[inside]], minlength=size)
    in_floods = np.bincount(alarm_group[alarms.in_flood[inside]], minlength=size)
    peaks = np.zeros(size, dtype=np.int64)
    np.maximum.at(peaks, alarm_group, count_last_10min(alarms.series.times)[inside])
    monitored_bins = bins.clipped(*monitored)
    monitored_us, flood_us = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    np.add.at(monitored_us, monitored_bins.groups, monitored_bins.ends - monitored_bins.starts)
    flood_counts, standing_counts = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for flood in alarms.floods:
        flood_counts[np.unique(bins.clipped(flood.start_us, flood.end_us).groups)] += 1
        parts = monitored_bins.clipped(flood.start_us, flood.end_us)
        np.add.at(flood_us, parts.groups, parts.ends - parts.starts)
    for run in alarms.standing:
        touched = np.unique(bins.groups_at(alarms.times_of(run)))
        standing_counts[touched[touched >= 0]] += 1
    table = (
        counts, counts > 0, monitored_us, peaks, flood_counts, flood_us, in_floods, chattering, standing_counts,
    )  # fmt: skip
    for group, row in zip(groups.tolist(), np.stack(table, axis=1).tolist(), strict=True):
        yield group, AlarmCounts(*row)


def count_by_code(alarms: MachineAlarms, bins: TimeBins) -> Iterator[tuple[int, AlarmCounts]]:
    """Yield the counts of each code, without the monitored time."""
    series = alarms.series
    inside = bins.bin_index(series.times) >= 0
    codes, code_index = np.unique(series.codes[inside], return_inverse=True)
    size = len(codes)
    counts = np.bincount(code_index, minlength=size)
    chattering = np.bincount(code_index[alarms.chatters[inside]], minlength=size)
    in_floods = np.bincount(code_index[alarms.in_flood[inside]], minlength=size)
    peaks = np.zeros(size, dtype=np.int64)
    np.maximum.at(peaks, code_index, _count_same_code_last_10min(series)[inside])
    standing: dict[int, int] = {}
    for run in alarms.standing:
        if (bins.bin_index(alarms.times_of(run)) >= 0).any():
            standing[run.code] = standing.get(run.code, 0) + 1
    for index, code in enumerate(codes.tolist()):
        yield (
            code,
            AlarmCounts(
                machines=1,
                floods=None,
                flood_us=None,
                alarms=int(counts[index]),
                peak=int(peaks[index]),
                in_floods=int(in_floods[index]),
                chattering=int(chattering[index]),
                standing=standing.get(code, 0),
            ),
        )


def _count_same_code_last_10min(series: AlarmSeries) -> NDArray[np.int64]:
    """Return for each alarm how many of its own code came in the ten minutes up to it."""
    order = order_by_code(series)
    if not len(order):
        return order
    times, codes = series.times[order], series.codes[order]
    # Shift each code to a time range of its own, farther apart than a window.
    stretch = int(times.max() - times.min()) + 2 * WINDOW // timedelta(microseconds=1)
    ranks = np.cumsum(np.append(0, codes[1:] != codes[:-1]))
    counts = np.empty(len(order), dtype=np.int64)
    counts[order] = count_last_10min(times - times.min() + ranks * stretch)
    return counts
