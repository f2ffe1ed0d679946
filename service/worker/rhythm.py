"""The thread that keeps forecasts coming."""

import logging
from itertools import count
from threading import Event, Thread

from service.errors import NoChampion, Unavailable
from service.flows.refresh import Refresh

log = logging.getLogger(__name__)

_PULSE = 0.25  # wall seconds between two looks at the clock
_ARRIVALS_EVERY = 4  # pulses: under load a machine's forecast is made anew once a second, not at every event


class Rhythm:
    """Looks several times a second whether the grid or an arrival calls for a forecast."""

    def __init__(self, refresh: Refresh) -> None:
        self._refresh = refresh
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
        for pulse in count():
            if self._stopping.wait(_PULSE):
                return
            try:
                self.made += self._refresh.on_the_grid()
                if pulse % _ARRIVALS_EVERY == 0:
                    self._refresh.in_between()
                self.complaint = None
            except NoChampion:
                self.complaint = None  # nothing to do until something has been learned
            except Unavailable as error:
                self.complaint = str(error)
            except Exception as error:  # the next pulse may succeed, and must be tried
                self.complaint = repr(error)
                log.exception("could not make forecasts")
