"""The heartbeat of this process, read by the others."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event

from service.errors import Unavailable
from service.messaging.background import BackgroundThread
from service.messaging.cluster_store import ProcessRegistry
from service.messaging.process import HealthReport, ProcessInfo

_INTERVAL_S = 2.0


class Heartbeat(BackgroundThread):
    """Reports to the process registry at an interval; a slow report delays nothing else."""

    def __init__(
        self,
        process: ProcessInfo,
        *,
        registry: ProcessRegistry,
        report: Callable[[], HealthReport],
        interval_s: float = _INTERVAL_S,
    ) -> None:
        super().__init__("heartbeat")
        self._process, self._registry, self._report, self._interval_s = process, registry, report, interval_s
        self._triggered = Event()

    def trigger(self) -> None:
        """Send the next heartbeat at once: something has changed."""
        self._triggered.set()

    def send(self) -> None:
        self._registry.report(self._process, self._report())

    def stop(self) -> None:
        """End, and remove this process from the registry."""
        self._stopping.set()
        self._triggered.set()
        super().stop()
        with suppress(Unavailable):
            self._registry.remove(self._process.name)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._triggered.clear()
            try:
                self.send()
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded, and tried again
                self._record_error(error)
            if not self._stopping.is_set():
                self._triggered.wait(self._interval_s)
