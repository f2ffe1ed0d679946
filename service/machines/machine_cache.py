"""Which machines are enrolled, remembered between messages so that ingest need not ask the store each time."""

import time
from collections.abc import Callable

from service.machines.models import Machine
from service.machines.store import MachineStore
from wire.identity import MachineId

_CACHE_TTL_S = 1.0  # seconds; who was enrolled or retired just now is known this soon


class MachineCache:
    """A picture of the fleet, taken anew at most once a second; a retired machine is a stranger again."""

    def __init__(self, machines: MachineStore, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._machines, self._monotonic = machines, monotonic
        self._known: dict[MachineId, Machine] = {}
        self._until = float("-inf")

    def find(self, machine: MachineId) -> Machine | None:
        """Return the machine if it is enrolled."""
        if self._monotonic() >= self._until:
            self._known = {one.id: one for one in self._machines.all()}
            self._until = self._monotonic() + _CACHE_TTL_S
        return self._known.get(machine)
