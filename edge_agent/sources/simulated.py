"""A simulated machine as source: its alarms occur when the plant clock reaches them."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Event

from edge_agent.simulator import MachineProfile, alarms
from edge_agent.sources import SourceBatch
from wire.alarm import Alarm
from wire.clock import PlantClock

_MAX_BATCH = 500
_MIN_WAIT_S, _MAX_WAIT_S = 0.02, 0.5  # wall time
_BOOKMARK_INTERVAL_S = 10.0  # without alarms
_NEVER = datetime.max.replace(tzinfo=UTC)


class Simulated:
    """A simulated machine that runs by the plant clock, also while the agent is stopped.

    The bookmark is the plant time of the last alarm sent, so after a pause the missed alarms come first. Without
    a bookmark the machine starts at ``start``, or now.
    """

    def __init__(self, profile: MachineProfile, clock: PlantClock, start: datetime | None = None) -> None:
        self._profile = profile
        self._clock = clock
        self._start = start

    def batches(self, bookmark: str | None, stop: Event) -> Iterator[SourceBatch]:
        """Yield alarms once the plant clock has reached them, until ``stop``; never the same one twice."""
        reached = datetime.fromisoformat(bookmark) if bookmark else self._start or self._clock.now()
        upcoming = alarms(self._profile, reached, _NEVER)
        alarm = next(upcoming)
        if bookmark and alarm.at == reached:
            alarm = next(upcoming)
        bookmarked_at = -math.inf
        while not stop.is_set():
            # A clock set back must not take the bookmark with it.
            now = max(reached, self._clock.now())
            due: list[Alarm] = []
            while alarm.at <= now and len(due) < _MAX_BATCH:
                due.append(alarm)
                alarm = next(upcoming)
            caught_up = alarm.at > now
            reached = now if caught_up else due[-1].at
            if due or self._clock.wall() - bookmarked_at >= _BOOKMARK_INTERVAL_S:
                bookmarked_at = self._clock.wall()
                yield SourceBatch(due, reached.isoformat())
            if caught_up:
                wait = self._clock.wall_seconds(alarm.at - now)
                stop.wait(min(_MAX_WAIT_S, max(_MIN_WAIT_S, wait)))
