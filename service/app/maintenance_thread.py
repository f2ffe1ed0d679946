"""The thread that looks after what has no hurry: every minute what is due, every hour what may be forgotten."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from service.machines.retention import Retention
from service.messaging.background import BackgroundThread
from wire.clock import PlantClock

_LOOK_EVERY, _FORGET_EVERY = 60.0, 3600.0  # wall seconds
_BREATH = 0.05  # seconds between two pieces of what is forgotten, in which ingest goes on


class MaintenanceThread(BackgroundThread):
    """Never in a hurry, never in the way.

    ``own`` is what every process looks at for itself every minute; ``shared`` and forgetting are done by the one
    that ``leads``. Ages are measured against the time that ``trusted`` returns.
    """

    def __init__(
        self,
        *,
        own: Sequence[Callable[[], object]],
        shared: Sequence[Callable[[], object]],
        retention: Retention,
        clock: PlantClock,
        leads: Callable[[], bool] = lambda: True,
        trusted: Callable[[datetime], datetime] = lambda now: now,
    ) -> None:
        super().__init__("housekeeping")
        self._own, self._shared, self._leads = own, shared, leads
        self._retention, self._clock, self._trusted = retention, clock, trusted
        self.forgotten = 0

    def _run(self) -> None:
        forget_at = time.monotonic()
        while not self._stopping.is_set():
            try:
                leads = self._leads()
                for duty in (*self._own, *(self._shared if leads else ())):
                    duty()
                if leads and time.monotonic() >= forget_at:
                    self.forgotten += self._retention.apply(
                        self._trusted(self._clock.now()), self._yield_to_others
                    )
                    forget_at = time.monotonic() + _FORGET_EVERY
                self.last_error = None
            except Exception as error:  # noqa: BLE001 - recorded, and tried again
                self._record_error(error)
            self._stopping.wait(_LOOK_EVERY)

    def _yield_to_others(self) -> bool:
        return not self._stopping.wait(_BREATH) and self._leads()
