"""Read the signals of a controller at an interval."""

import time
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from threading import Event
from typing import Protocol

from edge_agent.sources.edges import UNDESCRIBED
from edge_agent.sources.monitor import Reading
from edge_agent.sources.signals import Unreadable
from wire.broker_check import Finding


class PolledDevice(Protocol):
    """A controller that is asked for each signal; ``Unreachable`` from any method ends the connection."""

    @property
    def title(self) -> str: ...

    @property
    def signals(self) -> Sequence[str]: ...

    def open(self) -> None:
        """Connect."""

    def read(self, signal: str) -> Collection[str]:
        """Return the names of a signal's active alarms, or raise :class:`Unreadable`."""
        ...

    def close(self) -> None:
        """Disconnect."""


class Polling:
    """Reads all signals of a device every ``interval`` seconds; each answer proves the connection."""

    unnoticed, unknown = timedelta(), None

    def __init__(self, device: PolledDevice, interval: float) -> None:
        self._device, self._interval = device, interval
        self._next = 0.0
        self.title, self.open, self.close = device.title, device.open, device.close

    def readings(self, stop: Event) -> list[Reading]:
        """Wait for the next poll and read every signal."""
        stop.wait(max(0.0, self._next - time.monotonic()))
        self._next = time.monotonic() + self._interval
        return [self._read(signal) for signal in self._device.signals]

    def check(self) -> Iterator[Finding]:
        """Yield whether each signal can be read."""
        for signal in self._device.signals:
            reading = self._read(signal)
            if reading.problem:
                yield Finding(signal, ok=False, message=f"{reading.problem}; correct its address or its type")
            else:
                active = ", ".join(sorted(reading.active))
                yield Finding(signal, ok=True, message=f"active now: {active or 'no alarm'}")

    def _read(self, signal: str) -> Reading:
        try:
            return Reading(signal, dict.fromkeys(self._device.read(signal), UNDESCRIBED))
        except Unreadable as error:
            return Reading(signal, problem=str(error))
