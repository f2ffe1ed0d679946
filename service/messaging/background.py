"""The shape of every thread here: it ends when told to, survives what its work raises, and says what is wrong."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from service.errors import Unavailable

log = logging.getLogger(__name__)


class BackgroundThread:
    """A named thread; a subclass works in ``_run`` and passes what it raised to ``_record_error``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self.complaint: str | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is at hand and end; harmless if it was never started."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def error(self) -> str | None:
        """What is wrong with it, if anything is."""
        return self.complaint or (None if self._thread.is_alive() else f"the {self._name} has ended")

    def _run(self) -> None:
        raise NotImplementedError

    def _record_error(self, error: Exception) -> None:
        """Note what went wrong; the next round may succeed, and must be tried."""
        if isinstance(error, Unavailable):
            self.complaint = str(error)
            return
        self.complaint = repr(error)
        log.error("the %s met a defect", self._name, exc_info=error)


_SWITCH_INTERVAL_S = (
    0.0005  # seconds that a busy thread keeps the interpreter while another wants it; Python's own are 5 ms
)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Take short turns for as long as this lasts: always, they would cost ingest a tenth of its speed."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
