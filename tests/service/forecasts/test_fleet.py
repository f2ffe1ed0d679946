"""The fleet at a glance, on the real store: what a card says, in which order, and when it changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from forecasting.forecaster import Forecaster
from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.alarm_value import highest_value
from service.forecasts.fleet import FleetDependencies, FleetService, FleetSnapshot
from service.machines.catalogue import CatalogueEntry
from service.machines.evidence_store import HourlyCountStore
from service.machines.models import HourlyCounts, Machine
from service.machines.silence import SilentMachine
from service.messaging.bus import EventsStored
from tests.service.conftest import FILLER, NOW, connect_agent, enrolled, raise_alarms, small_model
from wire.clock import PlantClock
from wire.enums import ConnectionStatus, MachineState
from wire.identity import MachineId

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@dataclass(frozen=True)
class CountingStrips(HourlyCountStore):
    """The real strips, and how many machines they were read for."""

    read: list[int] = field(default_factory=list)

    before: list[Callable[[], None]] = field(default_factory=list)

    def counts(self, machines: Sequence[Machine], end: datetime, hours: int) -> dict[int, HourlyCounts]:
        self.read.append(len(machines))
        for wait in self.before:
            wait()
        return super().counts(machines, end, hours)


@dataclass
class Watch:
    """A board on the service's own parts, with a plant clock that the test sets."""

    service: Service
    now: datetime = NOW
    seconds: float = 0.0
    board: FleetService = field(init=False)
    strips: CountingStrips = field(init=False)

    def __post_init__(self) -> None:
        stores = self.service.stores
        self.strips = CountingStrips(stores.database)
        sources = FleetDependencies(
            machines=stores.machines,
            strips=self.strips,
            catalogue=stores.catalogue,
            champion=self.service.forecasts.service.champion,
            newest=self.service.forecasts.cache,
            silence=self.service.machines.silence,
            clock=PlantClock(wall=self._seconds_of_plant),
            stale_after=timedelta(minutes=15),
        )
        self.board = FleetService(sources, token="t", monotonic=lambda: self.seconds)  # noqa: S106 - no password

    def _seconds_of_plant(self) -> float:
        return self.now.timestamp()

    def look(self, *, site: str | None = None, since: str | None = None) -> FleetSnapshot:
        """Look again, a second later."""
        self.seconds += 1
        return self.board.overview(site=site, since=since)


@pytest.fixture
def watch(service: Service) -> Watch:
    return Watch(service)


def test_a_look_that_takes_long_is_taken_less_often(watch: Watch, stores: Stores, filler: Machine) -> None:
    def slowly() -> None:
        watch.seconds += 3

    watch.strips.before.append(slowly)
    watch.look()
    watch.strips.before.clear()
    raise_alarms(stores, filler, (NOW - MINUTE, 139))
    watch.service.bus.publish(EventsStored(frozenset({filler.id})))
    watch.seconds += 10
    assert watch.look().cards[0].card.last_alarm is None, "three seconds of work, twelve of rest"
    assert watch.look().cards[0].card.last_alarm


def names(seen: FleetSnapshot) -> list[str]:
    return [kept.card.machine for kept in seen.cards]


@pytest.mark.usefixtures("champion")
def test_a_card_says_how_a_machine_is_what_it_raised_and_what_is_likely(
    watch: Watch, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, (NOW - 27 * HOUR, 26), (NOW - HOUR, 139), (NOW - 5 * MINUTE, 26), (NOW, 137))
    connect_agent(stores, filler, at=NOW - MINUTE)
    seen = watch.look()
    (kept,) = seen.cards
    card = kept.card
    assert (card.site, card.machine, card.name, card.time_zone) == (
        "padova",
        "filler-1",
        "Filler 1",
        "Europe/Rome",
    )
    assert (card.state, card.presence, card.last_seen_at) == (
        MachineState.REGISTERED,
        ConnectionStatus.ONLINE,
        NOW - MINUTE,
    )
    assert (len(card.hourly_counts), card.hourly_counts[0], card.hourly_counts[-2:], sum(card.hourly_counts)) == (
        28,
        1,
        [1, 2],
        4,
    )
    assert card.hourly_counts_end == NOW.replace(hour=9, minute=0)
    assert card.last_alarm
    assert (card.last_alarm.at, card.last_alarm.code, card.last_alarm.text) == (NOW, 137, "Alarm 137")
    assert card.forecast_status == "ok"
    assert not card.learned
    forecast = watch.service.forecasts.cache.fresh_for([filler])[0].forecast
    assert {alarm.code: alarm.probability for alarm in card.likely} == {
        alarm.code: alarm.probability for alarm in forecast.alarms
    }
    for alarm in card.likely:
        assert alarm.lift == (round(alarm.probability / alarm.base_rate, 2) if alarm.base_rate else None)
    assert card.expected == sum(alarm.expected for alarm in forecast.alarms)
    assert card.urgency == highest_value(forecast.alarms)
    assert (seen.complete, seen.model_version, seen.sites) == (True, "v1", ["padova"])


def test_without_a_champion_cards_are_given_all_the_same(watch: Watch, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, (NOW, 139))
    seen = watch.look()
    card = seen.cards[0].card
    assert (card.likely, card.forecast_status, card.urgency, seen.model_version) == ([], None, 0, None)
    assert card.hourly_counts[-1] == 1


def test_presence_is_told_by_the_agent_and_by_the_machines_rhythm(watch: Watch, stores: Stores) -> None:
    cases = ("never", "gone", "quiet", "stale", "well")
    machines = {name: enrolled(stores.enrolments, MachineId("padova", name)) for name in cases}
    connect_agent(stores, machines["gone"], online=False)
    connect_agent(stores, machines["quiet"])
    connect_agent(stores, machines["stale"], at=NOW - 16 * MINUTE)
    connect_agent(stores, machines["well"], at=NOW - 15 * MINUTE)
    watch.service.machines.silence.silent = [SilentMachine(machines["quiet"].id, NOW - HOUR, 3.0, 2.0)]
    found = {kept.card.machine: kept.card.presence.value for kept in watch.look().cards}
    assert found == {"never": "never", "gone": "offline", "quiet": "silent", "stale": "stale", "well": "online"}


@pytest.mark.usefixtures("champion")
def test_the_most_urgent_come_first_then_who_cannot_be_heard_then_the_rest(watch: Watch, stores: Stores) -> None:
    machines = [enrolled(stores.enrolments, MachineId("padova", f"m{n}")) for n in range(9)]
    for n, machine in enumerate(machines):
        connect_agent(stores, machine, online=n % 2 != 0)
        hours = range(1, 40 if n in {6, 7, 8} else n + 2)  # with a long past the alarms are usual
        raise_alarms(stores, machine, *((NOW - k * HOUR, (26, 137, 139)[(n + k) % 3]) for k in hours))
    cards = [kept.card for kept in watch.look().cards]
    groups = [0 if one.urgency else 1 if one.presence is ConnectionStatus.OFFLINE else 2 for one in cards]
    assert groups == sorted(groups)
    assert set(groups) == {0, 1, 2}
    urgent = [one.urgency for one in cards]
    assert urgent == sorted(urgent, reverse=True)
    assert sorted(cards, key=lambda card: card.place) == cards


@pytest.mark.usefixtures("champion")
def test_a_machine_that_has_never_connected_has_no_forecast_and_comes_last(
    watch: Watch, stores: Stores, filler: Machine
) -> None:
    """Its forecast is computed from an imported past, and so is no reason to look at it first."""
    quiet = enrolled(stores.enrolments, MachineId("padova", "zz-quiet"))
    connect_agent(stores, quiet, online=False)
    past = [(NOW - n * HOUR, code) for n in range(1, 20) for code in (26, 139)]
    raise_alarms(stores, filler, *past)
    imported, offline = (kept.card for kept in reversed(watch.look().cards))
    assert (offline.machine, imported.machine) == ("zz-quiet", "filler-1")
    assert (imported.presence, imported.last_alarm is not None) == (ConnectionStatus.NEVER, True)
    assert (imported.likely, imported.expected, imported.urgency, imported.forecast_status) == ([], 0, 0, None)
    connect_agent(stores, filler)
    (connected,) = (kept.card for kept in watch.look().cards if kept.card.machine == "filler-1")
    assert (len(connected.likely), connected.expected) == (2, 2)


@pytest.mark.usefixtures("champion")
def test_only_what_was_touched_is_told_after_a_revision_and_only_that_is_read_again(
    watch: Watch, stores: Stores, filler: Machine
) -> None:
    for n in range(4):
        enrolled(stores.enrolments, MachineId("lyon", f"capper-{n}"))
    first = watch.look()
    assert watch.strips.read == [5]
    nothing = watch.look(since=first.revision)
    assert (nothing.complete, nothing.cards, nothing.revision) == (False, [], first.revision)
    raise_alarms(stores, filler, (NOW, 139))
    watch.service.forecasts.cache.invalidate([FILLER])
    some = watch.look(since=first.revision)
    assert (some.complete, names(some), watch.strips.read) == (False, ["filler-1"], [5, 1])
    assert some.cards[0].card.hourly_counts[-1] == 1
    assert watch.look(since=some.revision).cards == []
    assert names(watch.look(since=first.revision)) == ["filler-1"]  # who was away longer hears it too
    assert len(watch.look().cards) == 5


@pytest.mark.usefixtures("champion", "filler")
def test_a_touch_that_changes_nothing_is_not_told(watch: Watch) -> None:
    first = watch.look()
    watch.service.forecasts.cache.invalidate([FILLER])
    assert watch.look(since=first.revision).revision == first.revision


@pytest.mark.usefixtures("champion")
def test_a_new_forecast_reaches_the_card_once_it_is_kept(watch: Watch, stores: Stores, filler: Machine) -> None:
    connect_agent(stores, filler)
    first = watch.look()
    raise_alarms(stores, filler, *((NOW - n * MINUTE, 26) for n in range(1, 40)))
    watch.service.forecasts.cache.invalidate([FILLER])
    between = watch.look(since=first.revision)
    assert between.cards[0].card.likely == first.cards[0].card.likely
    (newest,) = watch.service.forecasts.cache.fresh_for([filler])
    after = watch.look(since=between.revision).cards[0].card
    assert {one.code: one.probability for one in after.likely} == {
        one.code: one.probability for one in newest.forecast.alarms
    }
    assert after.likely != first.cards[0].card.likely


@pytest.mark.usefixtures("champion")
def test_nobody_waits_for_the_forecasts_of_a_large_fleet(watch: Watch, stores: Stores) -> None:
    for n in range(25):
        connect_agent(stores, enrolled(stores.enrolments, MachineId("padova", f"m{n}")))
    with_forecast = [sum(bool(kept.card.likely) for kept in watch.look().cards) for _ in range(4)]
    assert with_forecast == [10, 20, 25, 25]


@pytest.mark.usefixtures("champion")
@pytest.mark.parametrize(
    "change",
    [
        lambda watch, filler: connect_agent(watch.service.stores, filler, online=False),
        lambda watch, _: setattr(watch, "now", watch.now + 16 * MINUTE),
        lambda watch, _: setattr(watch, "now", watch.now.replace(hour=9, minute=0)),
        lambda watch, _: setattr(watch.service.machines.silence, "silent", [SilentMachine(FILLER, NOW, 3.0, 2.0)]),
        lambda watch, _: watch.service.stores.catalogue.merge(
            [CatalogueEntry(139, "Film torn", "medium", target=True)]
        ),
        lambda watch, _: watch.service.stores.catalogue.merge(
            [CatalogueEntry(139, "Film torn", "high", target=False)]
        ),
    ],
    ids=["will", "unheard for long", "hour turns", "silence", "severity", "no target"],
)
def test_a_card_changes_without_a_touch(
    watch: Watch, stores: Stores, filler: Machine, change: Callable[[Watch, Machine], None]
) -> None:
    connect_agent(stores, filler)
    first = watch.look()
    assert watch.look(since=first.revision).cards == []
    change(watch, filler)
    assert names(watch.look(since=first.revision)) == ["filler-1"]


def test_another_champion_changes_every_card(
    watch: Watch, stores: Stores, filler: Machine, champion: Forecaster
) -> None:
    assert champion
    connect_agent(stores, filler)
    raise_alarms(stores, filler, (NOW - HOUR, 26))
    first = watch.look()
    stores.versions.add_and_promote(small_model(seed=9), report={}, at=NOW)
    watch.service.forecasts.service.champion.invalidate()
    watch.service.forecasts.cache.invalidate([FILLER])  # as the rhythm does when it sees the new version
    after = watch.look(since=first.revision)
    assert after.model_version == "v2"
    assert after.cards[0].card.likely != first.cards[0].card.likely


def test_a_machine_that_left_is_named_and_one_that_came_back_is_not(
    watch: Watch, stores: Stores, filler: Machine
) -> None:
    enrolled(stores.enrolments, MachineId("lyon", "capper"))
    first = watch.look()
    stores.enrolments.retire(filler, who="test", at=NOW, plant_at=NOW, reason=None)
    after = watch.look(since=first.revision)
    assert (after.gone, after.cards, after.sites) == ([FILLER], [], ["lyon"])
    assert watch.look(site="lyon", since=first.revision).gone == []
    assert watch.look().gone == []
    enrolled(stores.enrolments, FILLER)
    back = watch.look(since=after.revision)
    assert (back.gone, names(back)) == ([], ["filler-1"])


@pytest.mark.usefixtures("filler")
@pytest.mark.parametrize("revision", ["", "t", "t.", "t.99", "t.-1", "t.1.5", "u.1", "t.²", "\x00", "9" * 90])
def test_an_unknown_revision_gets_everything(watch: Watch, revision: str) -> None:
    watch.look()
    seen = watch.look(since=revision)
    assert (seen.complete, len(seen.cards)) == (True, 1)


@pytest.mark.usefixtures("filler")
def test_a_site_has_its_own_cards_but_all_sites_are_named(watch: Watch, stores: Stores) -> None:
    enrolled(stores.enrolments, MachineId("lyon", "capper"))
    seen = watch.look(site="lyon")
    assert (names(seen), seen.sites) == (["capper"], ["lyon", "padova"])
    assert names(watch.look(site="nowhere")) == []


@pytest.mark.usefixtures("filler")
def test_however_many_ask_at_once_the_store_is_asked_once(watch: Watch, stores: Stores) -> None:
    watch.look()
    enrolled(stores.enrolments, MachineId("lyon", "capper"))
    assert names(watch.board.overview()) == ["filler-1"]
    assert len(watch.look().cards) == 2
