"""The thread that keeps broker and database agreed on who may come in, above all after a reconnect."""

import time
from collections.abc import Callable

from service.flows.credentials import CredentialDesk
from service.worker.tireless import Tireless

_PULSE = 0.5  # seconds between two looks at the connection
_EVERY = 300.0  # seconds between two comparisons though nothing has happened
_RETRY = 10.0  # seconds until the next try after one that failed


class Reconciler(Tireless):
    """Compares; ``connections`` counts how often the service was connected, and is nought while it never was."""

    def __init__(self, desk: CredentialDesk, *, connections: Callable[[], int], pulse: float = _PULSE) -> None:
        super().__init__("reconciler")
        self._desk, self._connections, self._pulse = desk, connections, pulse

    def _run(self) -> None:
        seen, due = 0, 0.0
        while not self._stopping.wait(self._pulse):
            connections = self._connections()
            if not connections or (connections == seen and time.monotonic() < due):
                continue
            try:
                self._desk.reconcile()
                self.complaint = None
                seen, due = connections, time.monotonic() + _EVERY
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._troubled(error)
                seen, due = connections, time.monotonic() + _RETRY
