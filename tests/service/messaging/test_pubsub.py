"""The feed: who listens hears, who does not read loses the oldest and is told, and nobody is waited for."""

from uuid import uuid4

import pytest

from service.database.event_row import FROM_THE_FUTURE, IN_TIME, EventRow
from service.errors import TooMany, Unavailable
from service.machines.models import Machine
from service.messaging.pubsub import AlarmEvent, EventBus, Filter, Subscription
from tests.service.conftest import NOW
from wire.enums import StreamKind
from wire.identity import MachineId
from wire.timestamps import to_us

FILLER = Machine(1, MachineId("padova", "filler-1"), "Filler", "UTC", NOW)
CAPPER = Machine(2, MachineId("lyon", "capper-1"), "Capper", "UTC", NOW)


class Listener:
    """Counts how often it is woken."""

    def __init__(self, feed: EventBus, wish: Filter | None = None) -> None:
        self.woken = 0
        self.place: Subscription = feed.subscribe(wish or Filter(), self.wake)

    def wake(self) -> None:
        self.woken += 1


def rows(machine: Machine, *codes: int, flag: int = IN_TIME) -> list[EventRow]:
    return [
        EventRow(machine.row_id, uuid4(), seq, code, to_us(NOW), flag) for seq, code in enumerate(codes, start=1)
    ]


def codes(listener: Listener) -> list[int]:
    return [alarm.code for alarm in listener.place.take().alarms]


def test_listeners_hear_of_what_they_wish_for_and_of_nothing_else() -> None:
    feed = EventBus(most_listeners=9)
    everything = Listener(feed)
    lyon = Listener(feed, Filter(site="lyon"))
    filler = Listener(feed, Filter(site="padova", machine="filler-1", kinds=frozenset({StreamKind.FORECAST})))
    feed.publish_alarms([*rows(FILLER, 5), *rows(CAPPER, 6)], [FILLER, CAPPER])
    feed.publish(FILLER.id, b"f")
    feed.publish(CAPPER.id, b"c")
    heard = [one.place.take() for one in (everything, lyon, filler)]
    assert [[alarm.code for alarm in batch.alarms] for batch in heard] == [[5, 6], [6], []]
    assert [batch.forecasts for batch in heard] == [[b"f", b"c"], [b"c"], [b"f"]]


def test_streams_are_limited_by_owner_and_in_all_and_a_place_is_given_back_once() -> None:
    feed = EventBus(most_listeners=4, most_of_one=2)
    first, _second = (Listener(feed, Filter(owner="maria")) for _ in range(2))
    with pytest.raises(TooMany, match="You have 2 streams open already"):
        Listener(feed, Filter(owner="maria"))
    with pytest.raises(TooMany, match="You have 2 streams open already"):
        feed.take_place("maria")
    feed.take_place("paul")
    Listener(feed)
    assert feed.subscriber_count == 4
    with pytest.raises(Unavailable, match="4 streams are open already"):
        Listener(feed, Filter(owner="anna"))
    for _ in range(2):
        first.place.close()
    assert feed.subscriber_count == 3
    Listener(feed, Filter(owner="maria"))
    with pytest.raises(Unavailable):
        feed.take_place(None)


def test_who_does_not_read_loses_the_oldest_alarms_is_told_how_many_and_goes_on() -> None:
    feed = EventBus(most_listeners=1, most_waiting=3)
    slow = Listener(feed)
    feed.publish_alarms(rows(FILLER, 1, 2), [FILLER])
    feed.publish_alarms(rows(FILLER, 3, 4, 5, 6, 7), [FILLER])
    batch = slow.place.take()
    assert (batch.missed, [alarm.code for alarm in batch.alarms]) == (4, [5, 6, 7])
    feed.publish_alarms(rows(FILLER, 8), [FILLER])
    assert slow.place.take().missed == 0


def test_of_forecasts_that_wait_each_machine_has_its_newest_and_none_counts_as_missed() -> None:
    feed = EventBus(most_listeners=1, most_waiting=1)
    slow = Listener(feed)
    for said in (b"old", b"new"):
        feed.publish(FILLER.id, said)
        feed.publish(CAPPER.id, said)
    assert slow.place.take() == (0, [], [b"new", b"new"])


def test_a_listener_is_woken_once_until_it_has_taken_what_waits() -> None:
    feed = EventBus(most_listeners=1)
    listener = Listener(feed)
    for code in range(5):
        feed.publish_alarms(rows(FILLER, code), [FILLER])
    assert listener.woken == 1
    assert codes(listener) == [0, 1, 2, 3, 4]
    feed.publish(FILLER.id, b"f")
    assert listener.woken == 2


def test_alarms_whose_time_is_not_believed_are_not_told() -> None:
    feed = EventBus(most_listeners=1)
    listener = Listener(feed)
    feed.publish_alarms([*rows(FILLER, 5, flag=FROM_THE_FUTURE), *rows(FILLER, 6)], [FILLER])
    assert codes(listener) == [6]


def test_one_attribute_says_whether_anybody_listens() -> None:
    feed = EventBus(most_listeners=2)
    assert not feed.has_subscribers
    first, second = Listener(feed), Listener(feed)
    first.place.close()
    first.place.close()
    assert feed.has_subscribers
    second.place.close()
    assert not feed.has_subscribers
    assert feed.subscriber_count == 0


def test_beyond_the_limit_nobody_is_let_in_until_somebody_leaves() -> None:
    feed = EventBus(most_listeners=1)
    first = Listener(feed)
    with pytest.raises(Unavailable, match="1 streams are open already; close some, or raise"):
        Listener(feed)
    first.place.close()
    assert Listener(feed).place


def test_the_end_wakes_everybody_and_lets_nobody_in() -> None:
    feed = EventBus(most_listeners=9)
    idle, busy = Listener(feed), Listener(feed)
    feed.publish(FILLER.id, b"f")
    idle.place.take()
    feed.close()
    assert (idle.woken, busy.woken, feed.closed) == (2, 1, True)
    with pytest.raises(Unavailable, match="stops"):
        Listener(feed)


def test_alarms_of_another_process_are_relayed_to_whoever_wants_them_and_never_back() -> None:
    feed = EventBus(most_listeners=9)
    here = Listener(feed, Filter(relayed=False))
    all_of_it, one_site = Listener(feed), Listener(feed, Filter(site="lyon"))
    alarms = [AlarmEvent(FILLER.id, 1, 139), AlarmEvent(MachineId("lyon", "wrapper-9"), 2, 26)]
    feed.publish_remote(alarms, missed=3)
    assert all_of_it.place.take() == (3, alarms, [])
    assert one_site.place.take() == (3, alarms[1:], [])
    assert here.place.take() == (0, [], [])
