"""The thread that reconciles broker and database, above all after a reconnect."""

import time
from collections.abc import Callable

from service.broker_access.service import CredentialService
from service.messaging.background import BackgroundThread

_POLL_INTERVAL_S = 0.5
_RECONCILE_INTERVAL_S = 300.0  # without a reconnect
_RETRY_S = 10.0  # after a failure


class Reconciler(BackgroundThread):
    """Reconciles on the leader and refreshes elsewhere; ``connections`` is the number of connects so far."""

    def __init__(
        self,
        credentials: CredentialService,
        *,
        connections: Callable[[], int],
        poll_interval_s: float = _POLL_INTERVAL_S,
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__("reconciler")
        self._credentials, self._connections = credentials, connections
        self._poll_interval_s, self._is_leader = poll_interval_s, is_leader

    def _run(self) -> None:
        seen, due = (0, False), 0.0
        while not self._stopping.wait(self._poll_interval_s):
            now = (self._connections(), self._is_leader())
            if not now[0] or (now == seen and time.monotonic() < due):
                continue
            try:
                if now[1]:
                    self._credentials.reconcile()
                else:
                    self._credentials.refresh()
                self.last_error = None
                seen, due = now, time.monotonic() + _RECONCILE_INTERVAL_S
            except Exception as error:  # noqa: BLE001 - recorded and retried
                self._record_error(error)
                seen, due = now, time.monotonic() + _RETRY_S
