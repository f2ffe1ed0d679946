"""The thread that keeps forecasts coming."""

import logging
import time
from threading import Event, Thread

from service.errors import NoChampion, Unavailable
from service.flows.refresh import Refresh

log = logging.getLogger(__name__)

_PULSE = 0.25  # wall seconds between two looks at the clock
_REST = 9  # what arrives is answered at once, but at most a tenth of the time goes into it


class Rhythm:
    """Makes forecasts when the grid calls for them, and when something has arrived."""

    def __init__(self, refresh: Refresh) -> None:
        self.refresh = refresh
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="rhythm", daemon=True)
        self.made = 0
        self.complaint: str | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is at hand and end."""
        self._stopping.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        rested = 0.0
        while not self._stopping.is_set():
            arrived = self.refresh.newest.arrived.wait(_PULSE)
            pause = 0.0
            try:
                self.refresh.on_promotion()
                self.made += self.refresh.on_the_grid()
                if arrived and time.monotonic() >= rested:
                    started = time.monotonic()
                    self.refresh.in_between()
                    rested = time.monotonic() + _REST * (time.monotonic() - started)
                self.complaint = None
            except NoChampion:
                self.complaint, pause = None, _PULSE  # nothing to do until something has been learned
            except Unavailable as error:
                self.complaint, pause = str(error), _PULSE
            except Exception as error:  # the next round may succeed, and must be tried
                self.complaint, pause = repr(error), 1.0
                log.exception("could not make forecasts")
            if arrived:
                self._stopping.wait(max(0.005, pause, min(rested - time.monotonic(), _PULSE)))
