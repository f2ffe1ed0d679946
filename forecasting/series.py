"""A machine's alarms as two arrays in time order."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from wire.timestamps import from_us, to_us

__all__ = ["AlarmSeries", "from_us", "to_us"]


@dataclass(frozen=True, eq=False)
class AlarmSeries:
    """Alarm times (microseconds since 1970, ascending) and codes, side by side."""

    times: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def from_alarms(cls, alarms: Iterable[tuple[datetime, int]]) -> "AlarmSeries":
        """Build a series from (moment, code) pairs in any order; equal moments order by code."""
        rows = sorted((to_us(at), code) for at, code in alarms)
        return cls(
            np.array([at for at, _ in rows], dtype=np.int64),
            np.array([code for _, code in rows], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.times)

    def between(self, start: datetime, end: datetime) -> "AlarmSeries":
        """Return the alarms in ``[start, end)``."""
        first, last = np.searchsorted(self.times, [to_us(start), to_us(end)], side="left")
        return AlarmSeries(self.times[first:last], self.codes[first:last])
