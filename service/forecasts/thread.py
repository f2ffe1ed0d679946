"""The thread that keeps forecasts coming."""

import time

from service.errors import NoChampion, Unavailable
from service.forecasts.scheduler import ForecastScheduler
from service.messaging.background import BackgroundThread

_POLL_INTERVAL_S = 0.25  # wall seconds between two looks at the clock
_RETRY_S = 9  # what arrives is answered at once, but at most a tenth of the time goes into it


class ForecastThread(BackgroundThread):
    """Makes forecasts when the grid calls for them, and when something has arrived."""

    def __init__(self, refresh: ForecastScheduler) -> None:
        super().__init__("rhythm")
        self.refresh = refresh
        self.made = 0

    def _run(self) -> None:
        rested = 0.0
        while not self._stopping.is_set():
            arrived = self.refresh.newest.arrived.wait(_POLL_INTERVAL_S)
            pause = 0.0
            if self.refresh.idle:
                self.refresh.skip()  # the leader has the same change
                self._stopping.wait(_POLL_INTERVAL_S)
                continue
            try:
                self.refresh.on_leadership()
                self.refresh.on_promotion()
                self.made += self.refresh.run_grid()
                if arrived and time.monotonic() >= rested:
                    started = time.monotonic()
                    self.refresh.run_changed()
                    rested = time.monotonic() + _RETRY_S * (time.monotonic() - started)
                self.last_error = None
            except NoChampion:
                self.last_error, pause = None, _POLL_INTERVAL_S  # nothing to do until something has been learned
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)
                pause = _POLL_INTERVAL_S if isinstance(error, Unavailable) else 1.0
            if arrived:
                self._stopping.wait(max(0.005, pause, min(rested - time.monotonic(), _POLL_INTERVAL_S)))
