"""A machine's alarms as two arrays in time order: what every window is cut from."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Return a moment as whole microseconds since 1970, exactly."""
    return (at - _EPOCH) // _MICROSECOND


def moment(at_us: int) -> datetime:
    """Return the UTC moment that many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=int(at_us))


@dataclass(frozen=True, eq=False)
class AlarmSeries:
    """Alarm times (microseconds since 1970, ascending) and codes, side by side."""

    times: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, alarms: Iterable[tuple[datetime, int]]) -> "AlarmSeries":
        """Build a series from (moment, code) pairs in any order; equal moments order by code."""
        rows = sorted((micros(at), code) for at, code in alarms)
        return cls(
            np.array([at for at, _ in rows], dtype=np.int64),
            np.array([code for _, code in rows], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.times)

    def between(self, start: datetime, end: datetime) -> "AlarmSeries":
        """Return the alarms in ``[start, end)``."""
        first, last = np.searchsorted(self.times, [micros(start), micros(end)], side="left")
        return AlarmSeries(self.times[first:last], self.codes[first:last])
