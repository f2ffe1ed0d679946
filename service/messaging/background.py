"""Base class of background threads: they stop on request, survive errors, and report the last one."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from service.errors import Unavailable

log = logging.getLogger(__name__)


class BackgroundThread:
    """A named thread; a subclass works in ``_run`` and passes errors to ``_record_error``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self.last_error: str | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the work under way and end; may be called before the start."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def error(self) -> str | None:
        """The last error, until work succeeds again."""
        return self.last_error or (None if self._thread.is_alive() else f"the {self._name} has ended")

    def _run(self) -> None:
        raise NotImplementedError

    def _record_error(self, error: Exception) -> None:
        """Record an error; the caller tries again."""
        if isinstance(error, Unavailable):
            self.last_error = str(error)
            return
        self.last_error = repr(error)
        log.error("unexpected error in the %s thread", self._name, exc_info=error)


_SWITCH_INTERVAL_S = 0.0005  # Python's default is 5 ms


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Switch threads more often for a while; permanently this would cost ingest a tenth of its throughput."""
    default = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(default)
