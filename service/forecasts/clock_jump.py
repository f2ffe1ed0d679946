"""Which moments were used while the clock was ahead: those after a leap, once the clock has gone back before it.

Only a leap counts that the process itself has seen, measured by its monotonic clock. A clock that is set back
without one may be the wrong one, and then nothing of what was stored is doubted.
"""

from datetime import datetime, timedelta
from typing import Final

_LEAP: Final = timedelta(hours=1)  # so much ahead of the time that has passed is a leap
_MOST: Final = 1_000  # moments after which a clock that leapt is taken for right


class ClockLeap:
    """Observes the moments of the grid, in the order in which they are used."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._last: tuple[datetime, float] | None = None
        self._since_leap: list[datetime] | None = None

    def observe(self, at: datetime, seconds: float) -> list[datetime]:
        """Take the next moment and the monotonic clock; return the moments used while the clock was ahead."""
        last, self._last = self._last, (at, seconds)
        if last is None:
            return []
        wrong: list[datetime] = []
        if self._since_leap and at < self._since_leap[0]:
            wrong, self._since_leap = self._since_leap, None
        elif at - last[0] - timedelta(seconds=(seconds - last[1]) * self._speed) > _LEAP:
            self._since_leap = []
        if self._since_leap is not None:
            self._since_leap.append(at)
            if len(self._since_leap) > _MOST:
                self._since_leap = None
        return wrong
