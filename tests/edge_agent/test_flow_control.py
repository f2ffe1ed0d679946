"""The window: wide where acks are fast, narrow where they are slow, and the wait before the next connection."""

from edge_agent.backoff import AWAY_FIRST, AWAY_MOST, MOST, ReconnectBackoff
from edge_agent.flow_control import FIRST, LARGEST, SMALLEST, SendWindow
from tests.support.fake_clock import FakeClock


def acked_after(window: SendWindow, clock: FakeClock, seconds: float, seq: int) -> None:
    window.sent(seq)
    clock.now += seconds
    window.acked(seq)


def test_fast_acks_widen_the_window_up_to_its_largest() -> None:
    clock = FakeClock()
    window = SendWindow(monotonic=clock)
    for seq in range(1, 100):
        acked_after(window, clock, 0.05, seq)
    assert window.size == LARGEST


def test_slow_acks_narrow_it_down_to_its_smallest_and_fast_ones_widen_it_again() -> None:
    clock = FakeClock()
    window = SendWindow(monotonic=clock)
    for seq in range(1, 20):
        acked_after(window, clock, 5.0, seq)
    assert window.size == SMALLEST
    acked_after(window, clock, 0.1, 50)
    assert window.size > SMALLEST


def test_an_ack_in_between_changes_nothing() -> None:
    clock = FakeClock()
    window = SendWindow(monotonic=clock)
    acked_after(window, clock, 1.0, 10)
    assert window.size == FIRST


def test_an_ack_of_what_is_not_under_way_changes_nothing() -> None:
    window = SendWindow()
    window.acked(1000)
    window.sent(10)
    window.acked(5)
    assert window.size == FIRST


def test_what_is_overdue_is_sent_again_in_smaller_pieces() -> None:
    window = SendWindow()
    window.reset(overdue=True)
    assert window.size == FIRST // 2
    window.reset(overdue=False)
    assert window.size == FIRST


def test_a_broker_that_is_away_is_tried_again_soon_and_never_later_than_in_seconds() -> None:
    patience = ReconnectBackoff()
    waits = [patience.next_delay(None, rival=False) for _ in range(50)]
    assert max(waits) <= MOST
    assert patience.next_delay(10.0, rival=False) <= 1.0


def test_who_finds_another_in_its_place_comes_back_ever_later_until_the_place_is_free() -> None:
    patience = ReconnectBackoff()
    waits = [patience.next_delay(None, rival=True) for _ in range(10)]
    assert AWAY_FIRST * 0.8 <= waits[0] <= AWAY_FIRST * 1.2
    assert AWAY_MOST * 0.8 <= waits[-1] <= AWAY_MOST * 1.2
    patience.next_delay(10.0, rival=False)
    assert patience.next_delay(None, rival=True) <= AWAY_FIRST * 1.2
