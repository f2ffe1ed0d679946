"""The thread that looks after what has no hurry: silent machines every minute, retention every hour."""

import logging
import time
from threading import Event, Thread

from service.errors import Unavailable
from service.flows.retention import Retention
from service.flows.silence import SilenceWatch
from wire.clock import PlantClock

log = logging.getLogger(__name__)

_LOOK_EVERY, _FORGET_EVERY = 60.0, 3600.0  # wall seconds
_BREATH = 0.05  # seconds between two pieces of what is forgotten, in which ingest goes on


class Housekeeping:
    """Never in a hurry, never in the way."""

    def __init__(self, *, silence: SilenceWatch, retention: Retention, clock: PlantClock) -> None:
        self._silence, self._retention, self._clock = silence, retention, clock
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="housekeeping", daemon=True)
        self.forgotten = 0
        self.complaint: str | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the piece at hand and end."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        forget_at = time.monotonic()
        while not self._stopping.is_set():
            try:
                self._silence.look(self._clock.now())
                if time.monotonic() >= forget_at:
                    self.forgotten += self._retention.apply(self._clock.now(), self._breathe)
                    forget_at = time.monotonic() + _FORGET_EVERY
                self.complaint = None
            except Unavailable as error:
                self.complaint = str(error)
            except Exception as error:  # the next round may succeed, and must be tried
                self.complaint = repr(error)
                log.exception("could not look after the store")
            self._stopping.wait(_LOOK_EVERY)

    def _breathe(self) -> bool:
        return not self._stopping.wait(_BREATH)
