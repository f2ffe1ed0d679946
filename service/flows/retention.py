"""What is kept: events up to an age, and, if a size is set, only as many days as fit into it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.flows.ports import RetentionLog

log = logging.getLogger(__name__)

_PIECE = 2000  # rows of a machine in one transaction
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Retention:
    """Applied now and then; ``pause`` is called between pieces and says whether to go on."""

    store: RetentionLog
    keep: timedelta
    keep_quarantined: timedelta
    most_bytes: int | None = None

    def apply(self, now: datetime, pause: Callable[[], bool] = lambda: True) -> int:
        """Forget what is too old or too much; return how many events went."""
        gone = self._forget(now - self.keep, pause)
        self.store.forget_beside(now - self.keep, now - self.keep_quarantined)
        while self.most_bytes is not None and self.store.size() > self.most_bytes:
            oldest = self.store.oldest()
            # The present is never forgotten, however small the size: forecasts need it.
            if oldest is None or oldest > now - 2 * _DAY or not pause():
                break
            gone += self._forget(oldest + _DAY, pause)
        if gone:
            log.info("forgot %d events that were too old or too many", gone)
        return gone

    def _forget(self, before: datetime, pause: Callable[[], bool]) -> int:
        gone = 0
        while piece := self.store.forget_events(before, _PIECE):
            gone += piece
            if not pause():
                break
        return gone
