"""A span of time cut into slices by the clock on the plant's wall: days, hours of the day, shifts.

Clocks that change make a slice longer, shorter or empty, as they do for the people at the machine: where an hour
is skipped its slice has no length, where one comes twice it lasts two hours.
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
    """Slices ``[start, end)`` in microseconds since 1970, in time order and apart, each one of a group."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    groups: NDArray[np.int64]

    @classmethod
    def whole(cls, start_us: int, end_us: int) -> "TimeBins":
        """Return a span as one slice of the group 0."""
        return cls(np.array([start_us]), np.array([end_us]), np.zeros(1, dtype=np.int64))

    def clipped(self, start_us: int, end_us: int) -> "TimeBins":
        """Return what lies in ``[start_us, end_us)``."""
        starts, ends = np.maximum(self.starts, start_us), np.minimum(self.ends, end_us)
        kept = starts < ends
        return TimeBins(starts[kept], ends[kept], self.groups[kept])

    def for_group(self, group: int) -> "TimeBins":
        """Return the slices of one group."""
        kept = self.groups == group
        return TimeBins(self.starts[kept], self.ends[kept], self.groups[kept])

    def within(self, others: "TimeBins") -> "TimeBins":
        """Return the parts that lie in some other slice, with the groups they have here."""
        edges = np.unique(np.concatenate([self.starts, self.ends, others.starts, others.ends]))
        starts, ends = edges[:-1], edges[1:]
        groups = self.groups_at(starts)
        kept = (groups >= 0) & (others.bin_index(starts) >= 0)
        return TimeBins(starts[kept], ends[kept], groups[kept])

    def ungrouped(self) -> "TimeBins":
        """Return the same slices as one group."""
        return TimeBins(self.starts, self.ends, np.zeros_like(self.groups))

    def bin_index(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return in which slice each moment lies, or -1."""
        places = np.searchsorted(self.starts, moments, "right") - 1
        inside = places >= 0
        inside[inside] = moments[inside] < self.ends[places[inside]]
        return np.where(inside, places, -1)

    def groups_at(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return of which group the slice is in which each moment lies, or -1."""
        places = self.bin_index(moments)
        return np.where(places >= 0, self.groups[places], -1) if len(self.groups) else places


def by_daily_times(start: datetime, end: datetime, zone: ZoneInfo, times: Sequence[time]) -> TimeBins:
    """Cut ``[start, end)`` at these times of every day, which ascend; the group is the number of the time."""
    cuts, groups = [], []
    for day in local_days(start, end, zone):
        for group, at in enumerate(times):
            cuts.append(to_us(datetime.combine(day, at, tzinfo=zone)))
            groups.append(group)
    return _between(cuts, groups).clipped(to_us(start), to_us(end))


def by_days(start: datetime, end: datetime, zone: ZoneInfo) -> TimeBins:
    """Cut ``[start, end)`` at midnight; the group is the day's number in the calendar, ``date.toordinal``."""
    days = local_days(start, end, zone)
    cuts = [to_us(datetime.combine(day, time(0), tzinfo=zone)) for day in days]
    return _between(cuts, [day.toordinal() for day in days]).clipped(to_us(start), to_us(end))


def by_hours(start: datetime, end: datetime, zone: ZoneInfo) -> TimeBins:
    """Cut ``[start, end)`` at the full hours of the wall clock, each a group of its own and an hour long."""
    hour, first = 3_600_000_000, to_us(start)
    offset = (start.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(microseconds=1)
    cuts = np.arange((first + offset) // hour * hour - offset, to_us(end) + hour, hour)
    return TimeBins(cuts[:-1], cuts[1:], np.arange(len(cuts) - 1)).clipped(first, to_us(end))


def local_days(start: datetime, end: datetime, zone: ZoneInfo) -> list[date]:
    """Return the days on the plant's calendar that hold ``[start, end)``, and one more on either side."""
    first, last = start.astimezone(zone).date() - _DAY, end.astimezone(zone).date() + _DAY
    return [first + number * _DAY for number in range((last - first).days + 1)]


def _between(cuts: list[int], groups: list[int]) -> TimeBins:
    # A time that the clock skips is taken as if it had not, which may be after the next one; then it has no slice.
    edges = np.minimum.accumulate(np.array(cuts, dtype=np.int64)[::-1])[::-1]
    return TimeBins(edges[:-1], edges[1:], np.array(groups[:-1], dtype=np.int64))
