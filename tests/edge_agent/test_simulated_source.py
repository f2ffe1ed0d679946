"""The simulated source hands over each alarm once, when the plant clock reaches it, whatever interrupts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.simulator import alarms, machine_profile
from edge_agent.sources import Source, SourceBatch
from edge_agent.sources.simulated import Simulated
from wire.alarm import Alarm
from wire.clock import PlantClock

START = datetime(2024, 1, 2, 9, tzinfo=UTC)
MACHINE = machine_profile(1, 0)


class Plant(Event):
    """A plant whose wall clock moves only when somebody waits, and a stop signal that moves it."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__()
        self.seconds = START.timestamp()
        self.waits: list[float] = []
        self.clock = PlantClock(wall_origin=START, speed=speed, wall=lambda: self.seconds)

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        self.seconds += timeout
        return self.is_set()

    def pass_by(self, plant: timedelta) -> None:
        self.seconds += self.clock.wall_seconds(plant)


def true_alarms(start: datetime, end: datetime) -> list[Alarm]:
    """What the machine raised in ``[start, end]``."""
    return list(alarms(MACHINE, start, end + timedelta(microseconds=1)))


def until(plant: Plant, end: datetime, stream: Iterator[SourceBatch]) -> list[SourceBatch]:
    """Collect batches until one stands at ``end`` or later."""
    collected = []
    for batch in stream:
        collected.append(batch)
        if datetime.fromisoformat(batch.bookmark) >= end:
            plant.set()
    return collected


def handed_over(batches: list[SourceBatch]) -> list[Alarm]:
    return [alarm for batch in batches for alarm in batch.alarms]


def test_alarms_come_when_the_plant_clock_reaches_them_and_not_before() -> None:
    plant = Plant(speed=60.0)
    source: Source = Simulated(MACHINE, plant.clock)
    got: list[Alarm] = []
    for batch in source.batches(None, plant):
        now = plant.clock.now()
        assert all(alarm.at <= now for alarm in batch.alarms)
        got += batch.alarms
        # Nothing lies about for longer than the longest wait, which is half a minute of this plant's time.
        assert got == true_alarms(START, datetime.fromisoformat(batch.bookmark))
        assert now - datetime.fromisoformat(batch.bookmark) <= timedelta(seconds=0.5 * 60)
        if now > START + timedelta(hours=8):
            plant.set()
    assert len(got) > 10


def test_a_machine_goes_on_while_its_agent_is_away() -> None:
    plant = Plant(speed=600.0)
    before = until(plant, START + timedelta(hours=6), Simulated(MACHINE, plant.clock).batches(None, plant))
    plant.clear()
    plant.pass_by(timedelta(days=3))
    back = plant.clock.now()
    after = until(plant, back, Simulated(MACHINE, plant.clock).batches(before[-1].bookmark, plant))
    end = datetime.fromisoformat(after[-1].bookmark)
    assert handed_over(before) + handed_over(after) == true_alarms(START, end)
    assert handed_over(after)[0].at < back - timedelta(days=2)


def test_a_long_past_comes_in_batches_of_at_most_five_hundred_without_waiting() -> None:
    plant = Plant()
    past = START - timedelta(days=60)
    batches = until(plant, START, Simulated(MACHINE, plant.clock, past).batches(None, plant))
    assert max(len(batch.alarms) for batch in batches) == 500
    assert len(plant.waits) <= 1
    assert handed_over(batches) == true_alarms(past, START)


@settings(max_examples=15, deadline=None)
@given(lived=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_no_alarm_is_lost_or_repeated_however_often_the_agent_dies(lived: list[int]) -> None:
    plant, past = Plant(speed=3600.0), START - timedelta(days=20)
    bookmark: str | None = None
    got: list[Alarm] = []
    for batches in lived:
        for batch in islice(Simulated(MACHINE, plant.clock, past).batches(bookmark, plant), batches):
            got += batch.alarms
            bookmark = batch.bookmark
        plant.pass_by(timedelta(hours=5))
    assert bookmark is not None
    assert got == true_alarms(past, datetime.fromisoformat(bookmark))


def test_an_alarm_exactly_at_the_bookmark_is_not_told_again() -> None:
    plant = Plant()
    last, following = true_alarms(START - timedelta(days=2), START)[:2]
    first = next(Simulated(MACHINE, plant.clock).batches(last.at.isoformat(), plant))
    assert first.alarms[0] == following


def test_an_alarm_exactly_at_the_start_is_told() -> None:
    plant = Plant()
    at_start = true_alarms(START - timedelta(days=2), START)[0]
    first = next(Simulated(MACHINE, plant.clock, at_start.at).batches(None, plant))
    assert first.alarms[0] == at_start


def test_no_wait_is_longer_than_half_a_second() -> None:
    plant = Plant(speed=30.0)
    until(plant, START + timedelta(hours=4), Simulated(MACHINE, plant.clock).batches(None, plant))
    assert plant.waits
    assert min(plant.waits) > 0
    assert max(plant.waits) <= 0.5


def test_the_bookmark_moves_on_about_every_ten_seconds_when_nothing_happens() -> None:
    plant = Plant()
    silence = next(
        earlier.at
        for earlier, later in pairwise(true_alarms(START - timedelta(days=9), START))
        if later.at - earlier.at > timedelta(hours=1)
    )
    plant.pass_by(silence - START)
    quiet = list(islice(Simulated(MACHINE, plant.clock).batches(silence.isoformat(), plant), 20))
    assert not handed_over(quiet)
    moments = [datetime.fromisoformat(batch.bookmark) for batch in quiet]
    for earlier, later in pairwise(moments):
        assert timedelta(seconds=10) <= later - earlier <= timedelta(seconds=11)


def test_a_clock_set_back_neither_repeats_an_alarm_nor_takes_the_bookmark_back() -> None:
    plant = Plant(speed=60.0)
    stream = Simulated(MACHINE, plant.clock).batches(None, plant)
    before = list(islice(stream, 20))
    plant.pass_by(-timedelta(hours=3))
    after = list(islice(stream, 20))
    bookmarks = [datetime.fromisoformat(batch.bookmark) for batch in before + after]
    assert bookmarks == sorted(bookmarks)
    assert handed_over(before + after) == true_alarms(START, bookmarks[-1])


def test_a_bookmark_ahead_of_the_clock_stays_where_it_is() -> None:
    plant = Plant()
    ahead = START + timedelta(hours=3)
    first = next(Simulated(MACHINE, plant.clock).batches(ahead.isoformat(), plant))
    assert first == SourceBatch([], ahead.isoformat())


@pytest.mark.parametrize("bookmark", [None, START.isoformat()])
def test_a_stop_ends_the_stream(bookmark: str | None) -> None:
    plant = Plant()
    stream = Simulated(MACHINE, plant.clock).batches(bookmark, plant)
    next(stream)
    plant.set()
    assert list(stream) == []
