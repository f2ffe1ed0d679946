"""The next process that trains, ready before it is needed: loading what it learns with takes it seconds."""

import time
from collections.abc import Callable

from service.learning.training_process import TrainingProcess

_IDLE_TIMEOUT_S = 600.0  # seconds; machines are often enrolled one after the other, and refreshed so


class WarmProcessPool:
    """Keeps one apprentice waiting while another job is likely, which is for some minutes after one.

    Never beside one that learns, so that learning needs no more memory than it does alone.
    """

    def __init__(self, make: Callable[[], TrainingProcess], *, patience: float = _IDLE_TIMEOUT_S) -> None:
        self._make, self._patience = make, patience
        self._waiting: TrainingProcess | None = None
        self._until = float("-inf")

    def acquire(self) -> TrainingProcess:
        """Return the one that waits, or else a new one."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.is_alive:
            return waiting
        if waiting is not None:
            waiting.stop()
        return self._started()

    def keep_warm(self) -> None:
        """Look forward to another job."""
        self._until = time.monotonic() + self._patience

    def tick(self) -> None:
        """Have one waiting while another job is likely, and none any more when nobody came."""
        likely = time.monotonic() < self._until
        if likely and self._waiting is None:
            self._waiting = self._started()
        elif not likely or (self._waiting is not None and not self._waiting.is_alive):
            self.close()

    def close(self) -> None:
        """Let the one that waits go, and have no other."""
        self._until = float("-inf")  # one that died while it waited would die again
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None

    def _started(self) -> TrainingProcess:
        apprentice = self._make()
        apprentice.start()
        return apprentice
