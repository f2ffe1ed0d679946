"""The plant clock: the time that machines, windows and horizons live in, agreed on by both sides.

Real time by default. A demo or a replay gives agents and service the same origin and speed,
so that a week of alarms passes in minutes and every rule about time still means what it says.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class PlantClock:
    """Plant time is ``plant_origin`` when the wall says ``wall_origin`` and runs ``speed`` times as fast."""

    wall_origin: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    plant_origin: datetime | None = None
    speed: float = 1.0
    wall: Callable[[], float] = field(default=time.time, compare=False)

    def now(self) -> datetime:
        """Return the plant's present moment, in UTC."""
        started = self.plant_origin or self.wall_origin
        elapsed = self.wall() - self.wall_origin.timestamp()
        return started + timedelta(seconds=elapsed * self.speed)

    def wall_seconds(self, plant: timedelta) -> float:
        """Return how many seconds of wall time pass while ``plant`` passes in the plant."""
        return plant.total_seconds() / self.speed
