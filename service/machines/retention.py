"""What is kept: everything up to an age, and, if a size is set, only as many days as fit into it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
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
