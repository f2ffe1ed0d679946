"""Time bins in plant time: days, hours of the day, shifts.

A change to or from summer time makes a bin longer, shorter or empty: a skipped hour has an empty bin, a repeated
hour a bin of two hours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from wire.timestamps import to_us

_DAY = timedelta(days=1)


@dataclass(frozen=True, eq=False)
class TimeBins:
    """Bins ``[start, end)`` in microseconds since 1970, in time order, not overlapping, each with a group."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    groups: NDArray[np.int64]

    @classmethod
    def whole(cls, start_us: int, end_us: int) -> "TimeBins":
        """Return a span as one bin of group 0."""
        return cls(np.array([start_us]), np.array([end_us]), np.zeros(1, dtype=np.int64))

    def clipped(self, start_us: int, end_us: int) -> "TimeBins":
        """Return the parts in ``[start_us, end_us)``."""
        starts, ends = np.maximum(self.starts, start_us), np.minimum(self.ends, end_us)
        keep = starts < ends
        return TimeBins(starts[keep], ends[keep], self.groups[keep])

    def for_group(self, group: int) -> "TimeBins":
        keep = self.groups == group
        return TimeBins(self.starts[keep], self.ends[keep], self.groups[keep])

    def within(self, others: "TimeBins") -> "TimeBins":
        """Return the intersection with other bins, with the groups of these."""
        edges = np.unique(np.concatenate([self.starts, self.ends, others.starts, others.ends]))
        starts, ends = edges[:-1], edges[1:]
        groups = self.groups_at(starts)
        keep = (groups >= 0) & (others.bin_index(starts) >= 0)
        return TimeBins(starts[keep], ends[keep], groups[keep])

    def ungrouped(self) -> "TimeBins":
        return TimeBins(self.starts, self.ends, np.zeros_like(self.groups))

    def bin_index(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the bin of each moment, or -1."""
        index = np.searchsorted(self.starts, moments, "right") - 1
        inside = index >= 0
        inside[inside] = moments[inside] < self.ends[index[inside]]
        return np.where(inside, index, -1)

    def groups_at(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the group of the bin of each moment, or -1."""
        index = self.bin_index(moments)
        return np.where(index >= 0, self.groups[index], -1) if len(self.groups) else index


def by_daily_times(start: datetime, end: datetime, zone: ZoneInfo, times: Sequence[time]) -> TimeBins:
    """Split ``[start, end)`` at these ascending times of every day; the group is the index of the time."""
    cuts, groups = [], []
    for day in local_days(start, end, zone):
        for group, at in enumerate(times):
            cuts.append(to_us(datetime.combine(day, at, tzinfo=zone)))
            groups.append(group)
    return _between(cuts, groups).clipped(to_us(start), to_us(end))


def by_days(start: datetime, end: datetime, zone: ZoneInfo) -> TimeBins:
    """Split ``[start, end)`` at local midnight; the group is ``date.toordinal``."""
    days = local_days(start, end, zone)
    cuts = [to_us(datetime.combine(day, time(0), tzinfo=zone)) for day in days]
    return _between(cuts, [day.toordinal() for day in days]).clipped(to_us(start), to_us(end))


def by_hours(start: datetime, end: datetime, zone: ZoneInfo) -> TimeBins:
    """Split ``[start, end)`` at full local hours, each bin a group of its own."""
    hour, first = 3_600_000_000, to_us(start)
    offset = (start.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(microseconds=1)
    cuts = np.arange((first + offset) // hour * hour - offset, to_us(end) + hour, hour)
    return TimeBins(cuts[:-1], cuts[1:], np.arange(len(cuts) - 1)).clipped(first, to_us(end))


def local_days(start: datetime, end: datetime, zone: ZoneInfo) -> list[date]:
    """Return the local days of ``[start, end)``, and one more on either side."""
    first, last = start.astimezone(zone).date() - _DAY, end.astimezone(zone).date() + _DAY
    return [first + day * _DAY for day in range((last - first).days + 1)]


def _between(cuts: list[int], groups: list[int]) -> TimeBins:
    # A skipped local time may lie after the next one; then its bin is empty.
    edges = np.minimum.accumulate(np.array(cuts, dtype=np.int64)[::-1])[::-1]
    return TimeBins(edges[:-1], edges[1:], np.array(groups[:-1], dtype=np.int64))
