"""The thread that keeps broker and database agreed on who may come in, above all after a reconnect."""

import time
from collections.abc import Callable

from service.broker_access.service import CredentialService
from service.messaging.background import BackgroundThread

_PULSE = 0.5  # seconds between two looks at the connection
_EVERY = 300.0  # seconds between two comparisons though nothing has happened
_RETRY = 10.0  # seconds until the next try after one that failed


class Reconciler(BackgroundThread):
    """Compares, if it ``leads``; otherwise it only looks.

    ``connections`` counts how often the service was connected, and is nought while it never was.
    """

    def __init__(
        self,
        desk: CredentialService,
        *,
        connections: Callable[[], int],
        pulse: float = _PULSE,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__("reconciler")
        self._desk, self._connections, self._pulse, self._leads = desk, connections, pulse, leads

    def _run(self) -> None:
        seen, due = (0, False), 0.0
        while not self._stopping.wait(self._pulse):
            now = (self._connections(), self._leads())
            if not now[0] or (now == seen and time.monotonic() < due):
                continue
            try:
                if now[1]:
                    self._desk.reconcile()
                else:
                    self._desk.refresh()
                self.complaint = None
                seen, due = now, time.monotonic() + _EVERY
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)
                seen, due = now, time.monotonic() + _RETRY
