"""Which machines are registered, remembered between messages so that ingest need not ask the store each time."""

import time
from collections.abc import Callable

from service.core.machine import Machine
from service.flows.ports import Machines
from wire.identity import MachineId

_REMEMBER_STRANGERS = 1.0  # seconds; a newly registered machine is heard this soon


class Registry:
    """Remembers machines for good and strangers for a second."""

    def __init__(self, machines: Machines, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._machines, self._monotonic = machines, monotonic
        self._known: dict[MachineId, Machine] = {}
        self._strangers: dict[MachineId, float] = {}

    def find(self, machine: MachineId) -> Machine | None:
        """Return the machine if it is registered."""
        known = self._known.get(machine)
        if known is not None:
            return known
        now = self._monotonic()
        if self._strangers.get(machine, now) > now:
            return None
        found = self._machines.find(machine)
        if found is None:
            if len(self._strangers) >= 10_000:  # noqa: PLR2004 - strangers may invent names without end
                self._strangers.clear()
            self._strangers[machine] = now + _REMEMBER_STRANGERS
            return None
        self._strangers.pop(machine, None)
        self._known[machine] = found
        return found
