"""The thread that tells the other processes that this one is there, and how it is."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event

from service.errors import Unavailable
from service.messaging.background import BackgroundThread
from service.messaging.cluster_store import ProcessRegistry
from service.messaging.process import HealthReport, ProcessInfo

_INTERVAL_S = 2.0  # seconds between two reports


class Heartbeat(BackgroundThread):
    """Writes this process down on the roll, again and again, and strikes it off at the end.

    A report asks every part how it is, and may wait long for one that is not well; nobody waits for the report.
    """

    def __init__(
        self,
        member: ProcessInfo,
        *,
        processes: ProcessRegistry,
        report: Callable[[], HealthReport],
        pulse: float = _INTERVAL_S,
    ) -> None:
        super().__init__("presence")
        self._member, self._processes, self._report, self._pulse = member, processes, report, pulse
        self._news = Event()

    def trigger(self) -> None:
        """Say it again without waiting for the next time: something has changed."""
        self._news.set()

    def send(self) -> None:
        """Say once how this process is."""
        self._processes.report(self._member, self._report())

    def stop(self) -> None:
        """End, and be missed by nobody."""
        self._stopping.set()
        self._news.set()
        super().stop()
        with suppress(Unavailable):
            self._processes.remove(self._member.name)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            try:
                self.send()
                self.complaint = None
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)
            if not self._stopping.is_set():
                self._news.wait(self._pulse)
