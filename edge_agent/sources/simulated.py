"""A source that needs no machine: a simulated one whose alarms come true as the plant clock reaches them."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Event

from edge_agent.simulator import MachineProfile, alarms
from edge_agent.sources import SourceBatch
from wire.alarm import Alarm
from wire.clock import PlantClock

_MAX_BATCH = 500
_SHORTEST_WAIT, _LONGEST_WAIT = 0.02, 0.5  # wall seconds
_BOOKMARK_INTERVAL = 10.0  # wall seconds after which the bookmark moves on though nothing happened
_NEVER = datetime.max.replace(tzinfo=UTC)


class Simulated:
    """A simulated machine that runs by the plant clock, whether anyone watches or not.

    The bookmark is the plant time up to and including which alarms have been handed over, so after a
    pause everything the machine raised meanwhile comes first. Without a bookmark the machine's past
    begins at ``start``, or just now.
    """

    def __init__(self, personality: MachineProfile, clock: PlantClock, start: datetime | None = None) -> None:
        self._personality = personality
        self._clock = clock
        self._start = start

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield alarms once the plant clock has reached them, until ``stop``; never the same one twice."""
        reached = datetime.fromisoformat(bookmark) if bookmark else self._start or self._clock.now()
        upcoming = alarms(self._personality, reached, _NEVER)
        alarm = next(upcoming)
        if bookmark and alarm.at == reached:
            alarm = next(upcoming)
        told = -math.inf
        while not stop.is_set():
            # A clock set back must not take the bookmark with it.
            now = max(reached, self._clock.now())
            due: list[Alarm] = []
            while alarm.at <= now and len(due) < _MAX_BATCH:
                due.append(alarm)
                alarm = next(upcoming)
            caught_up = alarm.at > now
            reached = now if caught_up else due[-1].at
            if due or self._clock.wall() - told >= _BOOKMARK_INTERVAL:
                told = self._clock.wall()
                yield SourceBatch(due, reached.isoformat())
            if caught_up:
                wait = self._clock.wall_seconds(alarm.at - now)
                stop.wait(min(_LONGEST_WAIT, max(_SHORTEST_WAIT, wait)))
