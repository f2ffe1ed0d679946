"""Timelines: of however many alarms, only a bounded number is read, and the answer says so."""

from datetime import timedelta

import pytest

from service.alarm_metrics.timeline import Timeline, TimelineService
from service.app.service import Service
from service.app.stores import Stores
from service.machines.models import Machine
from tests.service.conftest import NOW, raise_alarms
from wire.timestamps import to_us

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture
def timeline(service: Service, stores: Stores, filler: Machine) -> Timeline:
    """A timeline with two floods, of which only the second is among the alarms that are read."""
    floods = [(start + n * SECOND, n % 90) for start in (NOW - 9 * HOUR, NOW - 2 * HOUR) for n in range(60)]
    raise_alarms(stores, filler, *floods)
    desk = TimelineService(stores.machines, stores.events, service.clock, max_read=80)
    return desk.timeline(filler.id, None, None)


def test_all_alarms_are_counted_and_the_newest_are_in_it(timeline: Timeline) -> None:
    assert (timeline.count, len(timeline.alarms), timeline.truncated) == (120, 80, True)
    assert timeline.alarms.times[-1] == to_us(NOW - 2 * HOUR + 59 * SECOND)
    assert list(timeline.alarms.times) == sorted(timeline.alarms.times)


def test_floods_are_looked_for_in_the_alarms_that_are_read(timeline: Timeline) -> None:
    assert [(one.flood.alarms) for one in timeline.floods] == [20, 60]


def test_a_timeline_that_fits_is_whole(service: Service, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *((NOW - HOUR + n * SECOND, n % 90) for n in range(80)))
    desk = TimelineService(stores.machines, stores.events, service.clock, max_read=80)
    found = desk.timeline(filler.id, None, None)
    assert (found.count, len(found.alarms), found.truncated) == (80, 80, False)
