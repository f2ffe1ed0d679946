"""What is kept: everything up to an age, and, if a size is set, only as many days as fit into it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.machines.retention_store import RetentionStore

log = logging.getLogger(__name__)

_PIECE = 2000  # rows of a machine in one transaction
_DAY = timedelta(days=1)
_PRESENT = 2 * _DAY  # never forgotten, however small the size: forecasts need it
_IN_VAIN = 7  # days; a single one may be too small to make room, and a size may be an estimate


@dataclass(frozen=True)
class Retention:
    """Applied now and then; ``pause`` is called between pieces and says whether to go on.

    A day goes whole: its events, the forecasts that were made on it with their outcomes, and what lies beside.
    """

    store: RetentionStore
    keep: timedelta
    keep_quarantined: timedelta
    most_bytes: int | None = None

    def apply(self, now: datetime, pause: Callable[[], bool] = lambda: True) -> int:
        """Forget what is too old or too much; return how many events went."""
        gone = self._forget(now - self.keep, now, pause)
        if self.most_bytes is not None:
            gone += self._fit(self.most_bytes, now, pause)
        if gone:
            log.info("forgot %d events that were too old or too many", gone)
        return gone

    def _fit(self, most_bytes: int, now: datetime, pause: Callable[[], bool]) -> int:
        """Forget the oldest days, one after the other, until the rest fits, or as long as that helps."""
        gone, in_vain, smallest = 0, 0, self.store.size()
        while smallest > most_bytes and pause():
            oldest = self.store.oldest()
            if oldest is None or oldest > now - _PRESENT or in_vain == _IN_VAIN:
                log.warning(
                    "%.3f GB are in use, and retention_gb allows %.3f; older days would not make enough room, so "
                    "allow more, or look at what else is in the database",
                    smallest / 1e9,
                    most_bytes / 1e9,
                )
                break
            gone += self._forget(oldest + _DAY, now, pause)
            size = self.store.size()
            in_vain = 0 if size < smallest else in_vain + 1
            smallest = min(size, smallest)
        return gone

    def _forget(self, before: datetime, now: datetime, pause: Callable[[], bool]) -> int:
        """Forget all of the time before a moment; return how many events went."""
        gone = 0
        while piece := self.store.delete_events(before, _PIECE):
            gone += piece
            if not pause():
                return gone
        while self.store.delete_forecasts(before, _PIECE):
            if not pause():
                return gone
        self.store.delete_other(before, now - self.keep_quarantined)
        return gone


_DAYS = 7  # different days with events that make a new time credible
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
