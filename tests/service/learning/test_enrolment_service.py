"""Enrolment as a flow: a machine collects until there is enough, says why it waits, is learned again in time."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.database.event_row import FROM_THE_FUTURE, EventRow
from service.database.tables import jobs, machines
from service.errors import Gone
from service.http.message import Message
from service.learning.models import NewMachine
from service.machines.events import EventWrite, GapRow
from service.machines.models import Machine
from service.settings import Settings
from tests.service.conftest import EPOCH, FILLER, NOW, connect_agent, enrolled, raise_alarms, small_model
from wire.clock import PlantClock
from wire.enums import JobKind, JobState, MachineState
from wire.identity import MachineId
from wire.timestamps import to_us

HOUR = timedelta(hours=1)


def every_hours(step: int, days: int, *, until: datetime = NOW) -> list[tuple[datetime, int]]:
    return [(until - hours * HOUR, 139) for hours in range(0, 24 * days, step)]


def waits_for(service: Service, stores: Stores) -> str:
    service.learning.enrolment.invalidate()
    assert service.learning.enrolment.queue_ready() == 0
    (job,) = stores.jobs.collecting()
    assert job.message
    return str(job.message)


def state(stores: Stores) -> MachineState:
    return stores.machines.get(FILLER).state


@pytest.mark.usefixtures("filler")
def test_a_machine_never_heard_stays_registered_and_says_what_to_do(service: Service, stores: Stores) -> None:
    words = "Waiting for the first event. Start the machine's agent, or load its past."
    assert waits_for(service, stores) == words
    assert state(stores) is MachineState.REGISTERED


def test_whoever_waits_for_the_first_event_learns_of_it_within_a_minute(
    service: Service, stores: Stores, filler: Machine
) -> None:
    assert "Waiting for the first event" in waits_for(service, stores)
    raise_alarms(stores, filler, (NOW - HOUR, 139))
    later = service.learning.enrolment.clock.now() + timedelta(minutes=2)
    service.learning.enrolment.clock = PlantClock(datetime.now(UTC), later, 0.001)
    service.learning.enrolment.queue_ready()
    (job,) = stores.jobs.collecting()
    assert str(job.message).startswith("Collecting data: 0 of 336 hourly windows; needs about 24 more days.")


def test_a_machine_collects_and_is_queued_by_itself_once_there_is_enough(
    service: Service, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, *every_hours(6, 10))
    words = waits_for(service, stores)
    assert re.match(r"Collecting data: 1\d\d of 336 hourly windows; needs about 1\d more days\. Its agent", words)
    connect_agent(stores, filler)
    assert waits_for(service, stores).endswith(" more days."), "its agent is online"
    assert state(stores) is MachineState.COLLECTING
    raise_alarms(stores, filler, *every_hours(6, 40))
    assert service.learning.enrolment.queue_ready() == 0, (
        "a window takes an hour to come, so it is not checked again at once"
    )
    service.learning.enrolment.invalidate()
    assert service.learning.enrolment.queue_ready() == 1
    assert state(stores) is MachineState.LEARNING
    assert stores.jobs.newest()[0].state is JobState.QUEUED


def test_events_that_all_lie_in_the_future_do_not_count_and_the_job_says_so(
    service: Service, stores: Stores, filler: Machine
) -> None:
    ahead = to_us(NOW + timedelta(days=30))
    rows = [EventRow(filler.row_id, EPOCH, seq, 5, ahead + seq, FROM_THE_FUTURE) for seq in range(1, 500)]
    stores.events.commit(EventWrite(to_us(NOW), events=rows))
    words = waits_for(service, stores)
    assert "499 events do not count, because their times lie in the future" in words
    assert state(stores) is MachineState.REGISTERED


def test_time_in_which_nobody_listened_is_not_learned_from(
    service: Service, stores: Stores, filler: Machine
) -> None:
    school = service.learning.enrolment.datasets
    past = NOW - timedelta(days=60)
    raise_alarms(stores, filler, *every_hours(6, 40, until=past))
    loaded = school.training_windows(filler, NOW)
    connect_agent(stores, filler)  # the agent starts today, 60 days after the loaded past ends
    raise_alarms(stores, filler, (NOW - HOUR, 139))
    later = school.training_windows(filler, NOW)
    assert later <= loaded, "silence without a connection is no evidence of silence"


def test_a_past_in_many_files_is_the_same_past(service: Service, stores: Stores, filler: Machine) -> None:
    alarms = every_hours(6, 40)
    raise_alarms(stores, filler, *alarms)
    whole = service.learning.enrolment.datasets.training_windows(filler, NOW)
    other = enrolled(stores.enrolments, MachineId("padova", "filler-2"))
    for first in range(0, len(alarms), 4):  # a file a day
        raise_alarms(stores, other, *alarms[first : first + 4])
    assert service.learning.enrolment.datasets.training_windows(other, NOW) == whole


def test_a_gap_in_what_was_heard_is_left_out(service: Service, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *every_hours(6, 60))
    whole = service.learning.enrolment.datasets.training_windows(filler, NOW)
    first, last = NOW - timedelta(days=50), NOW - timedelta(days=40)
    gap = GapRow(filler.row_id, EPOCH, 1, 9, to_us(first), to_us(last), "spool_full")
    stores.events.commit(EventWrite(to_us(NOW), gaps=[gap]))
    assert whole - service.learning.enrolment.datasets.training_windows(filler, NOW) > 100


def live(stores: Stores, *, learned: datetime) -> None:
    """Let the machine be live, as if it had been learned then."""
    for job in stores.jobs.collecting():
        stores.jobs.queue(job)
    claimed = stores.jobs.claim("test", now=datetime.now(UTC), lease=HOUR)
    assert claimed
    stores.jobs.fail(claimed, Message.of("x"), now=datetime.now(UTC) - timedelta(days=365), plant_now=NOW)
    with stores.database.write() as connection:
        connection.execute(machines.update().values(state="live", learned_us=to_us(learned)))


@pytest.mark.usefixtures("filler")
def test_a_machine_learned_long_ago_is_learned_again_once(service: Service, stores: Stores) -> None:
    live(stores, learned=NOW - timedelta(days=20))
    assert service.learning.enrolment.queue_refreshes() == 0
    live_since = NOW - timedelta(days=31)
    with stores.database.write() as connection:
        connection.execute(machines.update().values(learned_us=to_us(live_since)))
    service.learning.enrolment.refresh_after = timedelta(hours=1)  # the clock of these tests hardly moves
    assert service.learning.enrolment.queue_refreshes() == 1
    assert service.learning.enrolment.queue_refreshes() == 0, "it is queued already"
    refreshes = [job for job in stores.jobs.newest() if job.kind is JobKind.REFRESH]
    assert [job.state for job in refreshes] == [JobState.QUEUED]


@pytest.mark.usefixtures("filler")
def test_a_machine_that_was_rejected_or_failed_is_tried_again_in_time(service: Service, stores: Stores) -> None:
    live(stores, learned=NOW)
    service.learning.enrolment.refresh_after = timedelta(hours=1)
    for state, kind in (("live", JobKind.REFRESH), ("failed", JobKind.ENROL)):
        with stores.database.write() as connection:
            connection.execute(machines.update().values(state=state, learned_us=None))
        assert service.learning.enrolment.queue_refreshes() == 1
        job = stores.jobs.newest()[0]
        assert job.kind is kind
        with stores.database.write() as connection:
            connection.execute(jobs.update().values(state="failed", finished_us=0))


@pytest.mark.usefixtures("filler")
def test_without_a_schedule_nothing_is_learned_again(settings: Settings, stores: Stores) -> None:
    live(stores, learned=NOW - timedelta(days=300))
    never = Service(settings.model_copy(update={"refresh_days": 0}), stores)
    assert never.learning.enrolment.queue_refreshes() == 0
    assert never.learning.enrolment.refresh(FILLER).kind is JobKind.REFRESH, "but when asked for, it is"


def test_a_retired_machine_cannot_be_refreshed(service: Service, filler: Machine) -> None:
    service.learning.enrolment.retire(filler.id, who="test", reason=None)
    with pytest.raises(Gone, match="Enrol it again"):
        service.learning.enrolment.refresh(FILLER)
    again = service.learning.enrolment.enrol(NewMachine(FILLER, "Filler 1", "Europe/Rome"), key=None, who="test")
    assert again.is_new


@pytest.mark.usefixtures("champion")
def test_a_new_champion_speaks_within_a_second_and_none_is_left_out(
    service: Service, stores: Stores, filler: Machine
) -> None:
    connect_agent(stores, filler)
    refresh = service.forecasts.thread.refresh
    refresh.on_promotion()
    assert service.forecasts.cache.fresh_for([filler])[0].forecast.model_version == "v1"
    refresh.on_promotion()
    assert service.forecasts.cache.get_fresh(FILLER) is not None, "nothing changed, so nothing is made anew"
    stores.versions.add_and_promote(small_model(seed=9), report={}, at=NOW)
    service.forecasts.service.champion.invalidate()
    refresh.on_promotion()
    assert service.forecasts.cache.get_fresh(FILLER) is None
    assert service.forecasts.cache.fresh_for([filler])[0].forecast.model_version == "v2"


@pytest.mark.usefixtures("champion")
def test_a_champion_with_damaged_weights_does_not_replace_what_serves(
    service: Service, stores: Stores, filler: Machine
) -> None:
    assert service.forecasts.cache.fresh_for([filler])[0].forecast.model_version == "v1"
    second = stores.versions.add_and_promote(small_model(seed=9), report={}, at=NOW)
    file = stores.versions.weights.path / f"{second.weights}.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    service.forecasts.service.champion.invalidate()
    assert service.forecasts.service.champion.current().version.name == "v1"
    assert "damaged" in service.health().errors["model"]
    restarted = Service(service.settings, stores)
    assert "Restore them" in restarted.health().errors["model"]
    stores.versions.promote(stores.versions.get(1), at=NOW, who="admin", reason="v2 is damaged")
    assert restarted.forecasts.service.champion.current().version.name == "v1"


def test_two_machines_of_one_wish_are_two(service: Service, stores: Stores) -> None:
    for name in ("a", "b"):
        service.learning.enrolment.enrol(NewMachine(MachineId("lyon", name), "Same", "UTC"), key=None, who="test")
    assert len(stores.machines.all()) == 2
    assert len(stores.jobs.collecting()) == 2
