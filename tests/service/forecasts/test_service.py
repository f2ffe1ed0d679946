"""Forecasts: what they are made of, what they say of themselves, and that the past stays as it was."""

from datetime import timedelta

import numpy as np
import pytest

from forecasting.features import alarm_counts
from forecasting.forecaster import Forecaster
from forecasting.network import sigmoid
from forecasting.series import AlarmSeries
from service.app.service import Service
from service.app.stores import Stores
from service.errors import InputRejected, NoChampion, NotFound
from service.forecasts.cache import ForecastMade
from service.forecasts.service import ForecastService
from service.machines.models import Machine
from tests.service.conftest import FILLER, NOW, connect_agent, enrolled, raise_alarms, small_model
from tests.support.forecasts import Announced, refresh
from wire.clock import PlantClock
from wire.forecasts import Forecast, ForecastStatus
from wire.identity import MachineId

HOUR = timedelta(hours=1)


def desk(service: Service) -> ForecastService:
    return service.forecasts.service


def newest(service: Service, stores: Stores) -> Forecast:
    return service.forecasts.cache.fresh_for(stores.machines.all())[0].forecast


@pytest.fixture
def connected(stores: Stores, filler: Machine) -> None:
    """The machine's agent has connected: without it there is no forecast."""
    connect_agent(stores, filler)


def test_a_forecast_is_the_networks_word_on_the_evidence_window(
    service: Service, stores: Stores, filler: Machine, champion: Forecaster
) -> None:
    inside = [(NOW - 2 * HOUR, 139), (NOW - HOUR, 26)]
    raise_alarms(stores, filler, (NOW - timedelta(minutes=1721), 137), *inside)
    connect_agent(stores, filler)
    forecast = desk(service).forecast_now([filler], NOW)[0].forecast
    features = alarm_counts(AlarmSeries.from_alarms(inside), champion.vocabulary.input_columns)
    expected = sigmoid(champion.network.logits(features[None]))[0]
    said = {alarm.code: alarm.probability for alarm in forecast.alarms}
    assert [said[139], said[26]] == pytest.approx(expected.tolist(), abs=1e-4)
    assert forecast.events_seen == 2
    assert forecast.window_start == NOW - timedelta(minutes=1720)
    assert forecast.horizon_end == NOW + timedelta(minutes=480)
    assert forecast.model_version == "v1"
    assert [alarm.probability for alarm in forecast.alarms] == sorted(said.values(), reverse=True)
    assert {alarm.text for alarm in forecast.alarms} == {"Film torn", "Door open"}
    assert all(alarm.expected == (alarm.probability >= 0.5) for alarm in forecast.alarms)


def test_without_a_model_the_error_says_what_to_do(service: Service, filler: Machine) -> None:
    with pytest.raises(NoChampion, match="alarmcast admin enrol"):
        desk(service).forecast_now([filler], NOW)


@pytest.mark.parametrize(
    ("first_hours_ago", "silent_minutes", "online", "status"),
    [
        (60, 0, True, ForecastStatus.OK),
        (60, 15, True, ForecastStatus.OK),
        (60, 16, True, ForecastStatus.STALE),
        (60, 0, False, ForecastStatus.STALE),
        (14, 0, True, ForecastStatus.WARMING_UP),
        (15, 0, True, ForecastStatus.OK),
    ],
)
@pytest.mark.usefixtures("champion")
def test_a_forecast_says_how_far_it_may_be_trusted(
    service: Service,
    stores: Stores,
    filler: Machine,
    first_hours_ago: int,
    silent_minutes: int,
    online: bool,  # noqa: FBT001
    status: ForecastStatus,
) -> None:
    raise_alarms(stores, filler, (NOW - first_hours_ago * HOUR, 139))
    connect_agent(stores, filler, at=NOW - timedelta(minutes=silent_minutes), online=online)
    assert desk(service).forecast_now([filler], NOW)[0].forecast.status == status


@pytest.mark.usefixtures("champion")
def test_a_machine_never_heard_is_warming_up(service: Service, filler: Machine) -> None:
    forecast = desk(service).forecast_now([filler], NOW)[0].forecast
    assert (forecast.status, forecast.coverage, forecast.events_seen) == (ForecastStatus.WARMING_UP, 0.0, 0)
    assert {alarm.base_rate for alarm in forecast.alarms} == {None}


@pytest.mark.usefixtures("champion")
def test_a_machine_with_a_past_but_no_agent_is_stale_and_its_silence_is_no_evidence(
    service: Service, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, (NOW - timedelta(days=100), 139), (NOW - timedelta(days=99), 139))
    forecast = desk(service).forecast_now([filler], NOW)[0].forecast
    assert (forecast.status, forecast.coverage) == (ForecastStatus.STALE, 0.0)


@pytest.mark.usefixtures("champion")
def test_a_forecast_begun_before_an_arrival_is_not_kept(service: Service, filler: Machine) -> None:
    begun = service.forecasts.cache.versions
    made = desk(service).forecast_now([filler], NOW)[0]
    service.forecasts.cache.invalidate([FILLER])  # while it was being made
    service.forecasts.cache.put(made, begun)
    assert service.forecasts.cache.get_fresh(FILLER) is None
    service.forecasts.cache.put(made, service.forecasts.cache.versions)
    assert service.forecasts.cache.get_fresh(FILLER) is not None


@pytest.mark.usefixtures("champion")
def test_the_base_rate_is_how_often_past_horizons_held_the_code(
    service: Service, stores: Stores, filler: Machine
) -> None:
    # 48 h of history; the hourly horizons of 8 h that had closed by now start 48 h to 8 h ago.
    raise_alarms(stores, filler, (NOW - 48 * HOUR, 137), (NOW - 20 * HOUR, 139))
    connect_agent(stores, filler)
    rates = {alarm.code: alarm.base_rate for alarm in desk(service).forecast_now([filler], NOW)[0].forecast.alarms}
    moments = [NOW.replace(minute=0) - hours * HOUR for hours in range(8, 48)]
    moments = [at for at in moments if NOW - 48 * HOUR <= at <= NOW - 8 * HOUR]
    held = [at <= NOW - 20 * HOUR < at + 8 * HOUR for at in moments]
    assert rates[139] == pytest.approx(sum(held) / len(held), abs=1e-3)
    assert rates[26] == 0.0


@pytest.mark.usefixtures("filler")
def test_the_past_is_forecast_by_the_version_that_served_then(
    service: Service, stores: Stores, champion: Forecaster
) -> None:
    stores.versions.add_and_promote(small_model(seed=2), report={}, at=NOW - timedelta(hours=2))
    assert champion
    assert desk(service).forecast_at(FILLER, NOW - timedelta(hours=1)).model_version == "v2"
    old = desk(service).forecast_at(FILLER, NOW - timedelta(hours=3))
    assert (old.model_version, old.hindsight) == ("v1", False)
    before = desk(service).forecast_at(FILLER, NOW - timedelta(days=2))
    assert (before.model_version, before.hindsight) == ("v2", True)


@pytest.mark.usefixtures("champion", "filler")
def test_the_future_cannot_be_asked_from(service: Service) -> None:
    with pytest.raises(InputRejected, match="has not come yet"):
        desk(service).forecast_at(FILLER, NOW + HOUR)
    with pytest.raises(NotFound):
        desk(service).forecast_at(MachineId("padova", "none"), NOW - HOUR)


@pytest.mark.usefixtures("champion")
def test_a_new_event_makes_a_new_forecast_at_once(service: Service, stores: Stores, filler: Machine) -> None:
    assert newest(service, stores).events_seen == 0
    raise_alarms(stores, filler, (NOW - HOUR, 139))
    assert newest(service, stores).events_seen == 0, "kept until something touches it"
    service.forecasts.cache.invalidate([FILLER])
    assert newest(service, stores).events_seen == 1


@pytest.mark.usefixtures("champion", "filler")
@pytest.mark.usefixtures("connected")
def test_who_does_not_lead_makes_forecasts_for_its_own_listeners_and_stores_none(
    service: Service, stores: Stores
) -> None:
    abroad, made, leading = Announced(), list[ForecastMade](), [False]
    service.bus.subscribe(ForecastMade, made.append)
    rhythm = refresh(service, stores, abroad, has_streams=True, is_leader=lambda: leading[0])
    assert (rhythm.run_grid(), len(made), abroad.machines) == (0, 1, [])
    assert stores.forecasts.made_at(NOW.replace(minute=0)) == set()
    leading[0] = True
    assert rhythm.run_grid() == 1, "who takes over stores what its predecessor has not"
    leading[0] = False
    assert rhythm.run_grid() == 0
    assert ([event.leads for event in made], abroad.machines) == ([False, True], [FILLER])


@pytest.mark.usefixtures("champion")
@pytest.mark.parametrize("listened", [True, False])
@pytest.mark.usefixtures("connected")
def test_who_takes_over_tells_what_arrived_shortly_before_and_nothing_else(
    service: Service, stores: Stores, filler: Machine, *, listened: bool
) -> None:
    machines = [enrolled(stores.enrolments, MachineId("padova", f"filler-{number}")) for number in (2, 3)]
    for machine in machines:
        connect_agent(stores, machine)
    others = [machine.id for machine in machines]
    abroad, leading, seconds = Announced(), [False], [0.0]
    rhythm = refresh(
        service,
        stores,
        abroad,
        has_streams=listened,
        is_leader=lambda: leading[0],
        monotonic=lambda: seconds[0],
    )

    def arrives(machine: MachineId) -> None:
        rhythm.on_leadership()
        service.forecasts.cache.invalidate([machine])
        if rhythm.idle:
            rhythm.skip()
        else:
            rhythm.run_changed()

    arrives(others[0])
    seconds[0] += 100  # long enough for whoever leads to have told it
    arrives(filler.id)
    seconds[0] += 10
    assert abroad.machines == []
    leading[0] = True
    rhythm.on_leadership()
    assert (rhythm.run_changed(), abroad.machines) == (1, [FILLER])
    rhythm.on_leadership()
    assert rhythm.run_changed() == 0, "it is told once"
    leading[0] = False
    arrives(others[1])
    leading[0] = True
    rhythm.on_leadership()
    rhythm.run_changed()
    assert abroad.machines == [FILLER, others[1]], "and so whenever it takes over"


def test_who_neither_leads_nor_has_listeners_is_idle(service: Service, stores: Stores) -> None:
    assert refresh(service, stores, Announced(), is_leader=lambda: False).idle
    assert not refresh(service, stores, Announced()).idle


@pytest.mark.usefixtures("champion")
@pytest.mark.usefixtures("connected")
def test_the_grid_stores_one_forecast_a_machine_and_quarter_and_it_never_changes(
    service: Service, stores: Stores, filler: Machine
) -> None:
    announced = Announced()
    assert refresh(service, stores, announced).run_grid() == 1
    at = NOW.replace(minute=0)
    (first,) = stores.forecasts.of(filler, at, at + HOUR)
    raise_alarms(stores, filler, (at - timedelta(minutes=5), 139))  # a late event that would change it
    again = refresh(service, stores, announced)  # as after a restart of the service
    assert again.run_grid() == 0
    assert again.run_grid() == 0
    (kept,) = stores.forecasts.of(filler, at, at + HOUR)
    assert np.array_equal(kept.probabilities, first.probabilities)
    assert (kept.as_of, kept.events_seen, kept.version) == (at, 0, 1)
    assert announced.machines == [FILLER]


class Clocks:
    """The plant clock and the monotonic one, as a test sets them."""

    def __init__(self) -> None:
        self.plant, self.seconds = NOW, 0.0

    def wall(self) -> float:
        return self.plant.timestamp()

    def pass_by(self, span: timedelta) -> None:
        self.plant += span
        self.seconds += span.total_seconds()


@pytest.mark.usefixtures("champion")
@pytest.mark.usefixtures("connected")
def test_forecasts_of_a_clock_that_was_ahead_do_not_stand_in_the_way_of_the_regular_ones(
    service: Service, stores: Stores, filler: Machine
) -> None:
    clocks, ahead, quarter = Clocks(), timedelta(days=2), timedelta(minutes=15)
    rhythm = refresh(service, stores, Announced(), monotonic=lambda: clocks.seconds)
    rhythm.clock = PlantClock(wall=clocks.wall)
    assert rhythm.run_grid() == 1
    clocks.plant += ahead
    assert rhythm.run_grid() == 1
    clocks.pass_by(quarter)
    assert rhythm.run_grid() == 1
    clocks.plant -= ahead
    assert rhythm.run_grid() == 1
    kept = [one.as_of for one in stores.forecasts.of(filler, NOW - HOUR, NOW + 2 * ahead)]
    assert kept == [NOW.replace(minute=0), NOW.replace(minute=0) + quarter]
    clocks.pass_by(ahead - quarter)
    assert rhythm.run_grid() == 1, "the regular one of the moment that had been used ahead of time"


@pytest.mark.usefixtures("champion")
@pytest.mark.usefixtures("connected")
def test_a_clock_that_is_set_back_without_a_leap_before_deletes_nothing(
    service: Service, stores: Stores, filler: Machine
) -> None:
    clocks, quarter = Clocks(), timedelta(minutes=15)
    rhythm = refresh(service, stores, Announced(), monotonic=lambda: clocks.seconds)
    rhythm.clock = PlantClock(wall=clocks.wall)
    for _ in range(3):
        assert rhythm.run_grid() == 1
        clocks.pass_by(quarter)
    clocks.plant -= timedelta(hours=5)
    assert rhythm.run_grid() == 1
    clocks.plant += timedelta(hours=5)
    rhythm.run_grid()
    assert len(stores.forecasts.of(filler, NOW - quarter, NOW + 3 * quarter)) == 4


@pytest.mark.usefixtures("champion", "filler")
@pytest.mark.usefixtures("connected")
def test_arrivals_in_between_are_announced_but_not_stored(service: Service, stores: Stores) -> None:
    announced = Announced()
    rhythm = refresh(service, stores, announced)
    rhythm.run_grid()
    assert rhythm.run_changed() == 0
    service.forecasts.cache.invalidate([FILLER])
    assert rhythm.run_changed() == 1
    assert rhythm.run_changed() == 0
    assert announced.machines == [FILLER, FILLER]
    assert len(stores.forecasts.of(stores.machines.get(FILLER), NOW - HOUR, NOW + HOUR)) == 1
