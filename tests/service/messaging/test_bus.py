"""The change bus in one process: order, errors and forwarding."""

import pytest

from service.messaging.bus import Change, ChangeBus, ChangesMissed, EventsStored, JobsChanged
from tests.service.conftest import FILLER

STORED = EventsStored(frozenset({FILLER}))


def test_handlers_of_the_type_are_called_in_order_until_they_unsubscribe() -> None:
    bus, calls = ChangeBus(), list[str]()
    leave = bus.subscribe(EventsStored, lambda _event: calls.append("first"))
    bus.subscribe(EventsStored, lambda _event: calls.append("second"))
    bus.subscribe(JobsChanged, lambda _event: calls.append("jobs"))
    bus.publish(STORED)
    assert calls == ["first", "second"]
    leave()
    leave()
    bus.publish(STORED)
    assert calls == ["first", "second", "second"]


def test_a_handler_that_fails_keeps_the_event_from_nobody_and_its_error_is_raised() -> None:
    bus, received, forwarded = ChangeBus(), list[EventsStored](), list[Change]()

    def fail(_event: EventsStored) -> None:
        raise ValueError("broken")

    bus.subscribe(EventsStored, fail)
    bus.subscribe(EventsStored, received.append)
    bus.forward_to(forwarded.append)
    with pytest.raises(ValueError, match="broken"):
        bus.publish(STORED)
    assert (received, forwarded) == ([STORED], [STORED])


def test_only_published_changes_are_forwarded() -> None:
    bus, forwarded = ChangeBus(), list[Change]()
    assert not bus.has_subscribers(JobsChanged)
    bus.forward_to(forwarded.append)
    assert bus.has_subscribers(JobsChanged)
    bus.publish(JobsChanged())
    bus.publish(ChangesMissed())
    bus.deliver(STORED)
    assert forwarded == [JobsChanged()]
