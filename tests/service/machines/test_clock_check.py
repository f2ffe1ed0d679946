"""Nothing is deleted for its age by a clock that the stored events contradict."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from service.app.configuration import load_settings
from service.app.service import Service
from service.app.stores import Stores, open_stores
from service.database.engine import Database
from service.database.event_row import EventRow
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite
from service.machines.models import Machine
from service.machines.retention import ClockCheck
from service.machines.retention_store import RetentionStore
from service.settings import Settings
from tests.conftest import wait_until
from tests.service.conftest import FILLER, NOW, enrolled
from wire.identity import MachineId
from wire.timestamps import to_us

DAY = timedelta(days=1)
KEEP = 400 * DAY


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), FILLER)


def raised(database: Database, machine: Machine, *days: float) -> None:
    """Store an event so many days before now, for each."""
    epoch = uuid4()
    rows = [
        EventRow(machine.row_id, epoch, seq, 5, to_us(NOW - ago * DAY), 0) for seq, ago in enumerate(days, start=1)
    ]
    EventStore(database).commit(EventWrite(to_us(NOW), events=rows))


def check(database: Database, confirmed: datetime | None = None) -> ClockCheck:
    return ClockCheck(RetentionStore(database), KEEP, confirmed)


def test_a_clock_that_is_far_beyond_all_events_is_not_followed(database: Database, machine: Machine) -> None:
    enrolled(EnrolmentStore(database), MachineId("lyon", "silent"))
    raised(database, machine, *range(60))
    found = check(database)
    assert found.trusted(NOW + 420 * DAY) == NOW
    assert found.warning
    assert found.warning.startswith(
        "The clock says 2028-01-10 08:07, more than 30 days after the events up to 2026"
    )
    assert found.trusted(NOW + DAY) == NOW + DAY, "the clock is right again"
    assert found.warning is None


@pytest.mark.parametrize(("since", "is_trusted"), [(1, False), (6, False), (7, True), (9, True)])
def test_a_time_after_a_hole_is_trusted_once_there_are_events_of_seven_days(
    database: Database, machine: Machine, since: int, *, is_trusted: bool
) -> None:
    raised(database, machine, *range(450, 500), *(day * 1.01 for day in range(since)))
    found = check(database)
    assert (found.trusted(NOW) == NOW) is is_trusted
    assert (found.warning is None) is is_trusted


def test_a_plant_that_stood_still_for_weeks_is_ordinary(database: Database, machine: Machine) -> None:
    raised(database, machine, *range(29, 500))
    assert check(database).trusted(NOW) == NOW


def test_a_hole_is_no_warning_where_nothing_would_be_deleted(database: Database, machine: Machine) -> None:
    raised(database, machine, 100, 101)
    found = check(database)
    assert found.trusted(NOW) == NOW - 100 * DAY
    assert found.warning is None


def test_a_clock_that_was_confirmed_is_followed_until_then(database: Database, machine: Machine) -> None:
    raised(database, machine, 500)
    found = check(database, confirmed=NOW + DAY)
    assert (found.trusted(NOW), found.warning) == (NOW, None)
    assert found.trusted(NOW + 2 * DAY) == NOW - 500 * DAY
    assert found.warning


def test_without_events_there_is_nothing_to_doubt(database: Database) -> None:
    assert check(database).trusted(NOW) == NOW


def test_a_start_with_a_clock_far_ahead_deletes_nothing_and_says_so(
    settings: Settings, stores: Stores, filler: Machine
) -> None:
    raised(stores.database, filler, *range(60))
    stores.lock.release()
    ahead = load_settings(
        data_dir=settings.data_dir,
        clock_wall_origin=settings.clock_wall_origin,
        clock_plant_origin=NOW + 420 * DAY,
        clock_speed=0.001,
    )
    with open_stores(ahead) as opened:
        service = Service(ahead, opened)
        service.maintenance.start()
        try:
            wait_until(
                lambda: "clock" in service.health().warnings or service.maintenance.forgotten, "it has looked"
            )
        finally:
            service.maintenance.stop()
        assert service.maintenance.forgotten == 0
        assert opened.events.first_at(filler) == NOW - 59 * DAY
