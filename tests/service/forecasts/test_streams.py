"""Streams: filtered, bounded for slow readers, limited in number, and never waited for."""

from dataclasses import dataclass, field

import pytest

from service.errors import TooMany, Unavailable
from service.forecasts.cache import CachedForecast, ForecastMade
from service.forecasts.streams import StreamFilter, StreamHub, Subscription
from service.messaging.bus import AlarmEvent, AlarmsRaised, ChangeBus, StreamsClosed
from wire.enums import StreamKind
from wire.forecasts import Forecast
from wire.identity import MachineId

FILLER, CAPPER = MachineId("padova", "filler-1"), MachineId("lyon", "capper-1")


@dataclass
class Harness:
    """A hub on a bus of its own."""

    max_streams: int = 9
    max_per_owner: int | None = None
    max_queued: int = 1000
    bus: ChangeBus = field(default_factory=ChangeBus)
    hub: StreamHub = field(init=False)

    def __post_init__(self) -> None:
        self.hub = StreamHub(
            self.bus,
            max_streams=self.max_streams,
            max_per_owner=self.max_per_owner,
            max_queued=self.max_queued,
        )

    def raise_alarms(self, machine: MachineId, *codes: int) -> None:
        self.bus.publish(AlarmsRaised(tuple(AlarmEvent(machine, 1, code) for code in codes)))

    def forecast(self, machine: MachineId, encoded: bytes) -> None:
        forecast = Forecast.model_construct(site=machine.site, machine=machine.machine)
        self.bus.publish(ForecastMade(CachedForecast(machine, forecast, encoded), leads=True))


class Listener:
    """Counts how often it is woken."""

    def __init__(self, harness: Harness, wanted: StreamFilter | None = None) -> None:
        self.woken = 0
        self.queue: Subscription = harness.hub.subscribe(wanted or StreamFilter(), self.wake)

    def wake(self) -> None:
        self.woken += 1

    def codes(self) -> list[int]:
        return [alarm.code for alarm in self.queue.take().alarms]


def test_a_stream_gets_what_its_filter_matches_and_nothing_else() -> None:
    harness = Harness()
    everything = Listener(harness)
    lyon = Listener(harness, StreamFilter(site="lyon"))
    filler = Listener(
        harness, StreamFilter(site="padova", machine="filler-1", kinds=frozenset({StreamKind.FORECAST}))
    )
    harness.bus.publish(AlarmsRaised((AlarmEvent(FILLER, 1, 5), AlarmEvent(CAPPER, 1, 6))))
    harness.forecast(FILLER, b"f")
    harness.forecast(CAPPER, b"c")
    batches = [listener.queue.take() for listener in (everything, lyon, filler)]
    assert [[alarm.code for alarm in batch.alarms] for batch in batches] == [[5, 6], [6], []]
    assert [batch.forecasts for batch in batches] == [[b"f", b"c"], [b"c"], [b"f"]]


def test_streams_are_limited_per_owner_and_in_total_and_a_place_is_released_once() -> None:
    harness = Harness(max_streams=4, max_per_owner=2)
    first, _second = (Listener(harness, StreamFilter(owner="maria")) for _ in range(2))
    with pytest.raises(TooMany, match="You have 2 streams open already"):
        Listener(harness, StreamFilter(owner="maria"))
    with harness.hub.place():
        Listener(harness)
        assert harness.hub.count == 4
        with pytest.raises(Unavailable, match="4 streams are open already; close some, or raise"):
            Listener(harness, StreamFilter(owner="anna"))
        with pytest.raises(Unavailable), harness.hub.place():
            pass
    for _ in range(2):
        first.queue.close()
    assert harness.hub.count == 2
    assert Listener(harness, StreamFilter(owner="maria")).queue


def test_a_slow_reader_loses_the_oldest_alarms_and_gets_their_number() -> None:
    harness = Harness(max_queued=3)
    slow = Listener(harness)
    harness.raise_alarms(FILLER, 1, 2)
    harness.raise_alarms(FILLER, 3, 4, 5, 6, 7)
    batch = slow.queue.take()
    assert (batch.missed, [alarm.code for alarm in batch.alarms]) == (4, [5, 6, 7])
    harness.raise_alarms(FILLER, 8)
    assert slow.queue.take().missed == 0


def test_only_the_newest_forecast_of_each_machine_waits_and_none_counts_as_missed() -> None:
    harness = Harness(max_queued=1)
    slow = Listener(harness)
    for encoded in (b"old", b"new"):
        harness.forecast(FILLER, encoded)
        harness.forecast(CAPPER, encoded)
    assert slow.queue.take() == (0, [], [b"new", b"new"])


def test_a_reader_is_woken_once_until_it_has_taken_what_waits() -> None:
    harness = Harness()
    listener = Listener(harness)
    for code in range(5):
        harness.raise_alarms(FILLER, code)
    assert listener.woken == 1
    assert listener.codes() == [0, 1, 2, 3, 4]
    harness.forecast(FILLER, b"f")
    assert listener.woken == 2


def test_the_hub_is_subscribed_to_the_bus_only_while_a_stream_is_open() -> None:
    harness = Harness()
    first, second = Listener(harness), Listener(harness)
    first.queue.close()
    first.queue.close()
    assert harness.bus.has_subscribers(AlarmsRaised)
    second.queue.close()
    assert not harness.bus.has_subscribers(AlarmsRaised)
    assert harness.hub.count == 0
    again = Listener(harness)
    harness.raise_alarms(FILLER, 5)
    assert again.codes() == [5]


def test_closing_wakes_every_stream_and_refuses_new_ones() -> None:
    harness, closed = Harness(), list[StreamsClosed]()
    harness.bus.subscribe(StreamsClosed, closed.append)
    idle, busy = Listener(harness), Listener(harness)
    harness.forecast(FILLER, b"f")
    idle.queue.take()
    harness.hub.close()
    assert (idle.woken, busy.woken, harness.hub.closed, len(closed)) == (2, 1, True, 1)
    with pytest.raises(Unavailable, match="stops"):
        Listener(harness)


def test_every_stream_of_alarms_gets_the_number_of_those_missed_between_processes() -> None:
    harness = Harness()
    everything, lyon = Listener(harness), Listener(harness, StreamFilter(site="lyon"))
    alarms = (AlarmEvent(FILLER, 1, 139), AlarmEvent(CAPPER, 2, 26))
    harness.bus.deliver(AlarmsRaised(alarms, missed=3))
    assert everything.queue.take() == (3, list(alarms), [])
    assert lyon.queue.take() == (3, [alarms[1]], [])
