"""A cumulative histogram of durations."""

from bisect import bisect_left
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np


class Counted(NamedTuple):
    """A snapshot: ``below`` counts the values up to each bound; the last one counts all."""

    bounds: tuple[float, ...]
    below: tuple[int, ...]
    total: float

    @property
    def all(self) -> int:
        """The number of values."""
        return self.below[-1]


class Histogram:
    """Counts values; a snapshot is atomic, so derived metrics never decrease."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._edges = np.array(self.bounds)
        self._counts = [0] * (len(self.bounds) + 1)
        self._total = 0.0
        self._lock = Lock()

    def add(self, value: float) -> None:
        """Count one value."""
        index = bisect_left(self.bounds, value)
        with self._lock:
            self._counts[index] += 1
            self._total += value

    def add_all(self, values: Sequence[float], *, unit: float = 1.0) -> None:
        """Count many values, given in multiples of ``unit``; negative ones count as zero."""
        if not len(values):
            return
        scaled = np.maximum(np.asarray(values, dtype=np.float64), 0.0) * unit
        added = np.bincount(np.searchsorted(self._edges, scaled), minlength=len(self._counts)).tolist()
        total = float(scaled.sum())
        with self._lock:
            self._counts = [before + more for before, more in zip(self._counts, added, strict=True)]
            self._total += total

    def read(self) -> Counted:
        """Return a snapshot."""
        with self._lock:
            counts, total = list(self._counts), self._total
        return Counted(self.bounds, tuple(np.cumsum(counts).tolist()), total)
