"""The thread that finds out what became of forecasts, in the time that nobody else needs."""

import time
from collections.abc import Callable

from service.messaging.background import BackgroundThread
from service.scoring.service import ScoringService

_POLL_INTERVAL_S = 3.0  # wall seconds between two looks for what is due
_YIELD_S = 9  # at most a tenth of the time goes into it, so that forecasts and ingest never wait for long


class ScoringThread(BackgroundThread):
    """Scores forecasts whose horizon has closed; after a time of standstill it catches up piece by piece."""

    def __init__(
        self, scoring: ScoringService, *, pulse: float = _POLL_INTERVAL_S, leads: Callable[[], bool] = lambda: True
    ) -> None:
        super().__init__("scorekeeper")
        self._scoring, self._pulse, self._leads = scoring, pulse, leads
        self.scored = 0

    def _run(self) -> None:
        while not self._stopping.wait(self._pulse):
            if not self._leads():
                continue
            try:
                self._catch_up()
                self.complaint = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)

    def _catch_up(self) -> None:
        """Score what is due; looking in vain at a large fleet takes its time, too, and is rested from."""
        started = time.monotonic()
        for done in self._scoring.all_due():
            self.scored += done
            if self._stopping.wait(_YIELD_S * (time.monotonic() - started)) or not self._leads():
                return
            started = time.monotonic()
        self._stopping.wait(_YIELD_S * (time.monotonic() - started))
