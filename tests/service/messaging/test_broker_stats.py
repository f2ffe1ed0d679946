"""The broker's counters: only what is new is worth a warning, and a restart is not a negative number."""

from service.messaging.broker_stats import BrokerStats
from tests.support.fake_clock import FakeClock

DROPPED, STORED = "$SYS/broker/publish/messages/dropped", "$SYS/broker/store/messages/count"


def test_drops_of_long_ago_are_no_warning_and_new_ones_are_for_an_hour() -> None:
    clock = FakeClock(1_000_000.0)
    watch = BrokerStats(queue_alarm=10, monotonic=clock)
    watch.update(DROPPED, b"500")
    assert watch.warnings() == {}
    watch.update(DROPPED, b"512")
    assert "dropped 12 messages" in watch.warnings()["broker_dropped"]
    clock.now += 3601
    assert watch.warnings() == {}
    assert watch.counts == {"broker_dropped": 512}


def test_a_broker_started_again_counts_from_nought() -> None:
    watch = BrokerStats(queue_alarm=10)
    for figure in (b"100", b"0", b"3"):
        watch.update(DROPPED, figure)
    assert "dropped 3 messages" in watch.warnings()["broker_dropped"]


def test_a_long_queue_and_a_lost_session_are_told() -> None:
    watch = BrokerStats(queue_alarm=10)
    watch.update(STORED, b"11")
    watch.session_lost()
    assert set(watch.warnings()) == {"broker_queue", "broker_session"}
    watch.update(STORED, b"2")
    assert set(watch.warnings()) == {"broker_session"}


def test_what_is_no_figure_is_ignored() -> None:
    watch = BrokerStats(queue_alarm=10)
    watch.update(DROPPED, b"many")
    watch.update("$SYS/broker/version", b"2")
    assert watch.counts == {}
