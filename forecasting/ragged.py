"""Ragged arrays: many series concatenated, so that a whole fleet is processed in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

Moments = NDArray[np.int64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RaggedTimes:
    """Times that ascend within each track; ``edges`` are the offsets of the tracks."""

    times: Moments
    edges: Indices

    @property
    def is_single(self) -> bool:
        """Whether there is only one track."""
        return len(self.edges) == 2  # noqa: PLR2004 - where it begins and ends

    def count_before(self, track: Indices, at: Moments) -> Indices:
        """Return the index in ``times`` after a track's alarms before ``at``."""
        if self.is_single:
            return np.searchsorted(self.times, at)
        keys, origin, span = self._keys
        return np.searchsorted(keys, track * span + np.clip(at - origin, 0, span))

    def inter_arrival(self, *, first: int) -> Moments:
        """Return the time from each alarm's predecessor in its track, ``first`` for one that has none."""
        steps = np.diff(self.times, prepend=self.times[:1])
        begins = self.edges[:-1]
        steps[begins[begins < self.edges[1:]]] = first
        return steps

    @cached_property
    def _keys(self) -> tuple[Moments, int, int]:
        """Times shifted by track so that all are ascending, ``span`` apart."""
        if len(self.times) == 0:
            return self.times, 0, 1
        origin = int(self.times.min())
        span = int(self.times.max()) - origin + 1
        track = np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))
        return self.times - origin + track * span, origin, span


@dataclass(frozen=True, eq=False)
class FleetSeries:
    """The alarms of many machines, each machine's as its series has them."""

    times: Moments
    codes: NDArray[np.int64]
    edges: Indices

    @classmethod
    def from_series(cls, machines: Sequence[AlarmSeries]) -> "FleetSeries":
        """Concatenate the series of machines."""
        none = np.zeros(0, dtype=np.int64)
        return cls(
            np.concatenate([none, *(series.times for series in machines)]),
            np.concatenate([none, *(series.codes for series in machines)]),
            np.concatenate([[0], np.cumsum([len(series) for series in machines], dtype=np.intp)]),
        )

    def __len__(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def tracks(self) -> RaggedTimes:
        """A track for each machine."""
        return RaggedTimes(self.times, self.edges)

    @cached_property
    def machine_index(self) -> Indices:
        """Which machine raised each alarm."""
        return np.repeat(np.arange(len(self)), np.diff(self.edges))

    @cached_property
    def run_starts(self) -> NDArray[np.bool_]:
        """Whether each alarm opens a run of its code; repeats that follow it do not."""
        opens = np.ones(len(self.codes), dtype=np.bool_)
        np.not_equal(self.codes[1:], self.codes[:-1], out=opens[1:])
        begins = self.edges[:-1]
        opens[begins[begins < self.edges[1:]]] = True
        return opens

    def between(self, start_us: int, end_us: int) -> "FleetSeries":
        """Return every machine's alarms in ``[start, end)``."""
        inside = (self.times >= start_us) & (self.times < end_us)
        offsets = np.concatenate([[0], np.cumsum(inside)])
        return FleetSeries(self.times[inside], self.codes[inside], offsets[self.edges])
