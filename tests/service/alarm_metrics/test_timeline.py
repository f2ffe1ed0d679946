"""Timelines: of however many alarms, only a bounded number is read, and the answer says so."""

from datetime import timedelta

import pytest

from service.alarm_metrics.timeline import TimelineService
from service.app.service import Service
from service.app.stores import Stores
from service.machines.models import Machine
from tests.service.conftest import NOW, raise_alarms
from wire.rest.timelines import TimelineView

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture
def timeline(service: Service, stores: Stores, filler: Machine) -> TimelineView:
    """A timeline with two floods, of which only the second is among the alarms that are read."""
    floods = [(start + n * SECOND, n % 90) for start in (NOW - 9 * HOUR, NOW - 2 * HOUR) for n in range(60)]
    raise_alarms(stores, filler, *floods)
    desk = TimelineService(stores.machines, stores.events, stores.catalogue, service.clock, max_read=80)
    return desk.timeline(filler.id, None, None)


def test_all_alarms_are_counted_and_the_newest_are_in_it(timeline: TimelineView) -> None:
    assert (timeline.count, len(timeline.alarms), timeline.truncated) == (120, 80, True)
    assert timeline.alarms[-1].at == NOW - 2 * HOUR + 59 * SECOND
    times = [alarm.at for alarm in timeline.alarms]
    assert times == sorted(times)


def test_floods_are_looked_for_in_the_alarms_that_are_read(timeline: TimelineView) -> None:
    assert [one.alarms for one in timeline.floods] == [20, 60]


def test_a_timeline_that_fits_is_whole(service: Service, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *((NOW - HOUR + n * SECOND, n % 90) for n in range(80)))
    desk = TimelineService(stores.machines, stores.events, stores.catalogue, service.clock, max_read=80)
    found = desk.timeline(filler.id, None, None)
    assert (found.count, len(found.alarms), found.truncated) == (80, 80, False)
