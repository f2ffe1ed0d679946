"""The thread that judges what is news, so that neither ingest nor forecasts wait for it."""

import time

from service.messaging.background import BackgroundThread
from service.notifications.service import NotificationService

_POLL_INTERVAL_S = 0.25  # wall seconds between two looks whether there is something to judge
_YIELD_S = 0.02  # seconds between two pieces of what is written, in which ingest goes on
_RETRY_S = 9  # at most a tenth of the time goes into it


class NotificationThread(BackgroundThread):
    """Looks at forecasts soon after they are announced."""

    def __init__(self, notify: NotificationService, *, pulse: float = _POLL_INTERVAL_S) -> None:
        super().__init__("lookout")
        self._notify, self._pulse = notify, pulse

    def _run(self) -> None:
        while not self._stopping.wait(self._pulse):
            if not self._notify.pending.is_set():
                continue
            started = time.monotonic()
            try:
                self._notify.run_once(self._yield_to_others)
                self.complaint = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)
            self._stopping.wait(_RETRY_S * (time.monotonic() - started))

    def _yield_to_others(self) -> None:
        self._stopping.wait(_YIELD_S)
