"""The thread that finds out what became of forecasts, in the time that nobody else needs."""

import logging
import time
from threading import Event, Thread

from service.errors import Unavailable
from service.flows.score import Scoring

log = logging.getLogger(__name__)

_PULSE = 3.0  # wall seconds between two looks for what is due
_REST = 9  # at most a tenth of the time goes into it, so that forecasts and ingest never wait for long


class Scorekeeper:
    """Scores forecasts whose horizon has closed; after a time of standstill it catches up piece by piece."""

    def __init__(self, scoring: Scoring, *, pulse: float = _PULSE) -> None:
        self._scoring, self._pulse = scoring, pulse
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="scorekeeper", daemon=True)
        self.scored = 0
        self.complaint: str | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the piece at hand and end."""
        self._stopping.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(self._pulse):
            try:
                self._catch_up()
                self.complaint = None
            except Unavailable as error:
                self.complaint = str(error)
            except Exception as error:  # the next round may succeed, and must be tried
                self.complaint = repr(error)
                log.exception("could not score forecasts")

    def _catch_up(self) -> None:
        started = time.monotonic()
        for done in self._scoring.all_due():
            self.scored += done
            if self._stopping.wait(_REST * (time.monotonic() - started)):
                return
            started = time.monotonic()
