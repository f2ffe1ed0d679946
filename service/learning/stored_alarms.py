"""Alarms of a file that the machine has already: from its agent, or from another file of the same log."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from service.database.event_row import EventRow
from service.machines.event_store import EventStore
from service.machines.models import Machine
from wire.timestamps import from_us


@dataclass(frozen=True)
class KnownAlarms:
    """What is stored of a machine between two moments; ``log`` of None knows nothing."""

    log: EventStore | None
    machine: Machine

    def within(self, first_us: int | None, last_us: int | None) -> "KnownAlarms":
        """Return what may be known of a file from its first to its last alarm: nothing if they do not overlap."""
        nothing = KnownAlarms(None, self.machine)
        if self.log is None or first_us is None or last_us is None:
            return nothing
        first, last = self.log.first_at(self.machine), self.log.last_at(self.machine)
        if first is None or last is None or from_us(last_us) < first or from_us(first_us) > last:
            return nothing
        return self

    def split(self, events: list[EventRow]) -> tuple[list[EventRow], int]:
        """Return the events that are not stored yet, and how many are: those of the same moment and code."""
        if self.log is None or not events:
            return events, 0
        times = np.array([event.at_us for event in events], dtype=np.int64)
        end = from_us(int(times.max())) + timedelta(microseconds=1)
        stored = self.log.series(self.machine, from_us(int(times.min())), end)
        starts = np.searchsorted(stored.times, times, side="left").tolist()
        ends = np.searchsorted(stored.times, times, side="right").tolist()
        new = [
            event
            for event, start, stop in zip(events, starts, ends, strict=True)
            if start == stop or event.code not in stored.codes[start:stop]
        ]
        return new, len(events) - len(new)
