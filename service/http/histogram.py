"""How many took how long: counted in classes, for ever, in a few additions."""

from bisect import bisect_left
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np


class Counted(NamedTuple):
    """What a histogram held at one moment: ``below`` counts what was at most each bound, the last one is all."""

    bounds: tuple[float, ...]
    below: tuple[int, ...]
    total: float

    @property
    def all(self) -> int:
        """How many there were."""
        return self.below[-1]


class Histogram:
    """Grows only; what it holds is read in one piece, so that figures derived from it never run backwards."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._edges = np.array(self.bounds)
        self._counts = [0] * (len(self.bounds) + 1)
        self._total = 0.0
        self._lock = Lock()

    def add(self, value: float) -> None:
        """Count one."""
        place = bisect_left(self.bounds, value)
        with self._lock:
            self._counts[place] += 1
            self._total += value

    def add_all(self, values: Sequence[float], *, unit: float = 1.0) -> None:
        """Count many at once, given in multiples of ``unit``; what is below nought counts as nought."""
        if not len(values):
            return
        scaled = np.maximum(np.asarray(values, dtype=np.float64), 0.0) * unit
        found = np.bincount(np.searchsorted(self._edges, scaled), minlength=len(self._counts)).tolist()
        total = float(scaled.sum())
        with self._lock:
            self._counts = [before + more for before, more in zip(self._counts, found, strict=True)]
            self._total += total

    def read(self) -> Counted:
        """Return what it holds now."""
        with self._lock:
            counts, total = list(self._counts), self._total
        return Counted(self.bounds, tuple(np.cumsum(counts).tolist()), total)
