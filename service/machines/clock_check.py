"""Is the plant clock right? Checked against the stored events before anything is deleted for its age.

A clock that is far ahead at a single start would make everything look old. So deletion by age does not follow the
clock across a hole in the events: a time far beyond the events before it counts only once there are events of
several days around it. Whoever knows that the clock is right may confirm it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.machines.retention_store import RetentionStore

_DAYS = 7  # different days with events that make a new time credible
_DAY = timedelta(days=1)
_LEAST, _MOST = 7 * _DAY, 30 * _DAY
_REMEMBER = 600.0  # seconds; who only wants the warning need not have it at once


@dataclass
class ClockCheck:
    """``confirmed_until`` is up to when the clock is known to be right; ``warning`` is what was found last."""

    events: RetentionStore
    keep: timedelta
    confirmed_until: datetime | None = None
    monotonic: Callable[[], float] = time.monotonic
    warning: str | None = field(default=None, init=False)
    _looked: float = field(default=float("-inf"), init=False)

    @property
    def longest_hole(self) -> timedelta:
        """For how long nothing may have happened before the clock is doubted; it depends on what is kept."""
        return min(max(self.keep / 4, _LEAST), _MOST)

    def look(self, now: datetime) -> None:
        """Renew the warning, if the last look was long ago."""
        if self.monotonic() - self._looked >= _REMEMBER:
            self.trusted(now)

    def trusted(self, now: datetime) -> datetime:
        """Return the time that ages may be measured against: now, or, if it is doubted, when events last were."""
        self._looked, self.warning = self.monotonic(), None
        if self.confirmed_until is not None and now <= self.confirmed_until:
            return now
        last = self._before_a_hole(now)
        if last is None:
            return now
        oldest = self.events.oldest()
        if oldest is not None and oldest < now - self.keep:
            self.warning = (
                f"The clock says {now:%Y-%m-%d %H:%M}, more than {self.longest_hole.days} days after the events "
                f"up to {last:%Y-%m-%d}. Check the clock of this computer. Until events of {_DAYS} later days are "
                "stored nothing is deleted for its age; if the clock is right, set retention_confirmed_until."
            )
        return last

    def _before_a_hole(self, now: datetime) -> datetime | None:
        """Return the last event before a hole that is too long, unless several days with events follow it."""
        later, before = now, now + _DAY
        for _ in range(_DAYS):
            found = self.events.newest_before(before)
            if found is None:
                return None
            if later - found > self.longest_hole:
                return found
            later, before = found, found - _DAY
        return None
