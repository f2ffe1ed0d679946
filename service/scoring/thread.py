"""Background thread that scores forecasts."""

import time
from collections.abc import Callable

from service.messaging.background import BackgroundThread
from service.scoring.service import ScoringService

_POLL_INTERVAL_S = 3.0
_REST_RATIO = 9  # rest for this multiple of the time a batch took, so that ingest and forecasts go first


class ScoringThread(BackgroundThread):
    """Scores forecasts whose horizon has ended, in batches with pauses."""

    def __init__(
        self,
        scoring: ScoringService,
        *,
        interval: float = _POLL_INTERVAL_S,
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__("scoring thread")
        self._scoring, self._interval, self._is_leader = scoring, interval, is_leader
        self.scored = 0

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            if not self._is_leader():
                continue
            try:
                self._catch_up()
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded and retried
                self._record_error(error)

    def _catch_up(self) -> None:
        started = time.monotonic()
        for done in self._scoring.score_all_due():
            self.scored += done
            if self._stopping.wait(_REST_RATIO * (time.monotonic() - started)) or not self._is_leader():
                return
            started = time.monotonic()
        self._stopping.wait(_REST_RATIO * (time.monotonic() - started))
