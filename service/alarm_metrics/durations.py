"""How long alarms were active, from their raise to their clear; also stops, from stopped to resumed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries
from service.alarm_metrics.time_bins import TimeBins

STALE_US = timedelta(hours=24) // timedelta(microseconds=1)
_GAP, _END, _BEGIN = 0, 1, 2  # in the order of one moment
Moments = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spans:
    """Spans of codes, sorted by their start.

    ``ended``: the end is known. ``is_open``: it goes on at the end of what is known. If neither, a gap begins at
    the end, and what happened to the alarm is unknown.
    """

    codes: Moments
    starts: Moments
    ends: Moments
    ended: NDArray[np.bool_]
    is_open: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def lengths(self) -> Moments:
        """Microseconds."""
        return self.ends - self.starts

    def where(self, chosen: NDArray[np.bool_]) -> "Spans":
        """Return some of the spans."""
        times = (self.codes[chosen], self.starts[chosen], self.ends[chosen])
        return Spans(*times, self.ended[chosen], self.is_open[chosen])

    def overlap(self, bins: TimeBins) -> Moments:
        """Return how long each span is inside of the bins."""
        total = np.zeros(len(self), dtype=np.int64)
        for start, end in zip(bins.starts.tolist(), bins.ends.tolist(), strict=True):
            total += np.maximum(0, np.minimum(self.ends, end) - np.maximum(self.starts, start))
        return total

    def of_alarms(self, series: AlarmSeries) -> tuple[Moments, NDArray[np.bool_]]:
        """Return when each alarm of a series ended, -1 if that is unknown, and whether it is still active."""
        ends = np.full(len(series), -1, dtype=np.int64)
        active = np.zeros(len(series), dtype=np.bool_)
        for code in np.unique(self.codes).tolist():
            own, alarms = self.codes == code, series.codes == code
            starts, last = self.starts[own], self.ends[own]
            place = np.searchsorted(starts, series.times[alarms], "right") - 1
            inside = (place >= 0) & (series.times[alarms] <= last[place])
            ends[alarms] = np.where(inside & self.ended[own][place], last[place], -1)
            active[alarms] = inside & self.is_open[own][place]
        return ends, active


def spans(begun: AlarmSeries, ended: AlarmSeries, gaps: Moments, end_us: int) -> Spans:
    """Pair each begin with the next end of its code; an alarm that is raised again while active is one span.

    ``gaps`` are the starts of gaps: what happened in one is unknown, so every span ends there at the latest. Of an
    end and a begin at the same moment the end comes first if the alarm was active, otherwise second.
    """
    found: list[tuple[int, int, int, int]] = []
    since: dict[int, int] = {}
    idle_end: dict[int, int] = {}  # the last end of codes that were not active
    for at, kind, code in _in_order(begun, ended, gaps, end_us):
        if kind == _GAP:
            found += [(other, start, at, kind) for other, start in since.items()]
            since.clear()
        elif kind == _END and code in since:
            found.append((code, since.pop(code), at, kind))
        elif kind == _END:
            idle_end[code] = at
        elif idle_end.get(code) == at:
            found.append((code, at, at, _END))
        else:
            since.setdefault(code, at)
    found += [(code, start, end_us, _BEGIN) for code, start in since.items()]
    flat = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=4 * len(found))
    table = flat.reshape(-1, 4)
    table = table[np.lexsort((table[:, 2], table[:, 0], table[:, 1]))]
    return Spans(table[:, 0], table[:, 1], table[:, 2], table[:, 3] == _END, table[:, 3] == _BEGIN)


def _in_order(
    begun: AlarmSeries, ended: AlarmSeries, gaps: Moments, end_us: int
) -> Iterator[tuple[int, int, int]]:
    """Return time, kind and code of all edges up to the end, each once."""
    parts = (
        (gaps, np.zeros_like(gaps), _GAP),
        (ended.times, ended.codes, _END),
        (begun.times, begun.codes, _BEGIN),
    )
    rows = [np.stack([times, np.full_like(times, kind), codes], axis=1) for times, codes, kind in parts]
    table = np.concatenate(rows)
    table = table[table[:, 0] <= end_us]
    table = table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))]
    is_new = np.append(True, (table[1:] != table[:-1]).any(axis=1))[: len(table)]
    times, kinds, codes = (column.tolist() for column in table[is_new].T)
    return zip(times, kinds, codes, strict=True)
