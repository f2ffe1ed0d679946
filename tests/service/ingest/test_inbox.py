"""The inbox: bounded, in order for each machine, and fair between them."""

import time
from threading import Thread

import pytest

from service.ingest.inbox import BatchLimits, Inbox, InboxLimits, events_in
from service.messaging.mqtt_client import MqttMessage

ALL = BatchLimits(events=1_000_000, seconds=5)


def message(machine: str, mid: int, *, events: int = 1, channel: str = "events") -> MqttMessage:
    body = b'{"events":[' + b",".join(b'{"seq":1}' for _ in range(events)) + b"]}"
    return MqttMessage(0, mid, 1, f"alarmcast/v1/padova/{machine}/{channel}", body, retained=False)


def test_machines_take_turns_and_each_keeps_its_order() -> None:
    inbox = Inbox(InboxLimits())
    for mid in range(4):
        inbox.put(message("flood", mid))
    inbox.put(message("calm", 10))
    inbox.put(message("calm", 11, channel="state"))
    taken = [(delivery.topic.split("/")[3], delivery.mid) for delivery in inbox.take(ALL, timeout=1)]
    assert taken == [("flood", 0), ("calm", 10), ("flood", 1), ("calm", 11), ("flood", 2), ("flood", 3)]


def test_a_batch_ends_at_its_number_of_events() -> None:
    inbox = Inbox(InboxLimits())
    for mid in range(10):
        inbox.put(message("a", mid, events=100))
    assert len(inbox.take(BatchLimits(events=250, seconds=5), timeout=1)) == 3
    assert len(inbox) == 7


def test_an_empty_inbox_is_waited_for_and_then_given_up() -> None:
    inbox = Inbox(InboxLimits())
    assert inbox.take(ALL, timeout=0.01) == []

    def put_late() -> None:
        time.sleep(0.1)
        inbox.put(message("a", 1))

    late = Thread(target=put_late)
    late.start()
    assert [delivery.mid for delivery in inbox.take(ALL, timeout=10)] == [1]
    late.join()


def test_one_machine_alone_may_fill_the_inbox_and_no_more() -> None:
    inbox = Inbox(InboxLimits(messages=100, timeout_s=0))
    taken = [inbox.put(message("only", mid)) for mid in range(150)]
    assert taken == [True] * 100 + [False] * 50
    assert inbox.rejected["alarmcast/v1/padova/only"] == 50


def test_a_flood_leaves_room_for_machines_that_have_spoken() -> None:
    inbox = Inbox(InboxLimits(messages=100, timeout_s=0))
    inbox.put(message("calm", 0))
    flood = [inbox.put(message("flood", mid)) for mid in range(500)]
    assert sum(flood) == 75 - 1, "three quarters are the flood's, the rest is for others"
    assert all(inbox.put(message("calm", mid)) for mid in range(1, 21))


def test_the_first_message_of_a_machine_finds_room_in_a_full_inbox() -> None:
    inbox = Inbox(InboxLimits(messages=10, timeout_s=0))
    for mid in range(20):
        inbox.put(message("only", mid))
    assert inbox.put(message("other", 1))
    assert not inbox.put(message("other", 2))


def test_the_inbox_is_bounded_in_bytes_too() -> None:
    inbox = Inbox(InboxLimits(messages=1000, size=10_000, timeout_s=0))
    for mid in range(1000):
        inbox.put(message("a", mid, events=100))
    held = sum(len(delivery.payload) for delivery in inbox.take(ALL, timeout=1))
    assert 5_000 < held <= 10_000


@pytest.mark.parametrize(("events", "counted"), [(1, 1), (7, 7), (0, 1)])
def test_events_are_counted_without_being_read(events: int, counted: int) -> None:
    assert events_in(message("a", 1, events=events)) == counted


def test_while_the_store_takes_messages_a_full_inbox_lets_the_broker_wait() -> None:
    inbox = Inbox(InboxLimits(messages=10, timeout_s=60))
    taken: list[MqttMessage] = []
    filler = Thread(target=lambda: [inbox.put(message("only", mid)) for mid in range(100)])
    filler.start()
    while len(taken) < 100:
        taken += inbox.take(BatchLimits(events=5, seconds=1), timeout=10)
    filler.join()
    assert [delivery.mid for delivery in taken] == list(range(100))
    assert not inbox.rejected


def test_a_closed_inbox_lets_nobody_wait_and_acks_nothing() -> None:
    inbox = Inbox(InboxLimits(messages=1, timeout_s=3600))
    inbox.put(message("a", 1))
    waiting = Thread(target=inbox.put, args=(message("a", 2),))
    waiting.start()
    inbox.close()
    waiting.join(timeout=30)
    assert not waiting.is_alive()
    assert inbox.put(message("a", 3)), "what is not sent back is not acked to the broker"
    assert not inbox.rejected
