"""Plant time: the wall's unless told otherwise."""

from datetime import UTC, datetime, timedelta

import pytest

from wire.clock import PlantClock

START = datetime(2026, 11, 16, 8, tzinfo=UTC)


def at(wall: datetime) -> float:
    return wall.timestamp()


def test_by_default_plant_time_is_wall_time() -> None:
    clock = PlantClock(wall=lambda: at(START))
    assert abs(clock.now() - START) < timedelta(milliseconds=1)


def test_an_hour_passes_in_a_minute_at_speed_sixty() -> None:
    clock = PlantClock(START, None, 60, wall=lambda: at(START + timedelta(minutes=1)))
    assert clock.now() == START + timedelta(hours=1)
    assert clock.wall_seconds(timedelta(hours=1)) == pytest.approx(60)


def test_plant_time_may_start_elsewhere() -> None:
    origin = datetime(2019, 2, 21, tzinfo=UTC)
    clock = PlantClock(START, origin, 2, wall=lambda: at(START + timedelta(seconds=3)))
    assert clock.now() == origin + timedelta(seconds=6)
