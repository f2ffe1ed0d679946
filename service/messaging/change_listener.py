"""The thread that hears what other processes tell."""

from collections.abc import Callable

from service.messaging.background import BackgroundThread
from service.messaging.change_event import ChangeEvent
from service.messaging.pg_listen import PgNotify


class ChangeListener(BackgroundThread):
    """Hands over what it hears; ``deaf`` is called after every time in which it could not listen."""

    def __init__(
        self, signals: PgNotify, *, heard: Callable[[ChangeEvent], None], deaf: Callable[[], None]
    ) -> None:
        super().__init__("ear")
        self._signals, self._heard, self._deaf = signals, heard, deaf

    @property
    def error(self) -> str | None:
        """What is wrong with it, if anything is."""
        return self._signals.error or super().error

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._signals.listen(self._take, self._look_around, self._stopping)
            except Exception as error:  # noqa: BLE001 - told, and tried again
                self._record_error(error)
                self._stopping.wait(1.0)

    def _take(self, signal: ChangeEvent) -> None:
        self._heard(signal)
        self.complaint = None

    def _look_around(self) -> None:
        self._deaf()
        self.complaint = None
