"""The window: wide where acks are fast, narrow where they are slow, and the wait before the next connection."""

from edge_agent.backoff import MAX_DELAY_S, MAX_DUPLICATE_DELAY_S, MIN_DUPLICATE_DELAY_S, ReconnectBackoff
from edge_agent.flow_control import INITIAL_SIZE, MAX_SIZE, MIN_SIZE, SendWindow
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
    assert window.size == MAX_SIZE


def test_slow_acks_narrow_it_down_to_its_smallest_and_fast_ones_widen_it_again() -> None:
    clock = FakeClock()
    window = SendWindow(monotonic=clock)
    for seq in range(1, 20):
        acked_after(window, clock, 5.0, seq)
    assert window.size == MIN_SIZE
    acked_after(window, clock, 0.1, 50)
    assert window.size > MIN_SIZE


def test_an_ack_in_between_changes_nothing() -> None:
    clock = FakeClock()
    window = SendWindow(monotonic=clock)
    acked_after(window, clock, 1.0, 10)
    assert window.size == INITIAL_SIZE


def test_an_ack_of_what_is_not_under_way_changes_nothing() -> None:
    window = SendWindow()
    window.acked(1000)
    window.sent(10)
    window.acked(5)
    assert window.size == INITIAL_SIZE


def test_what_is_overdue_is_sent_again_in_smaller_pieces() -> None:
    window = SendWindow()
    window.reset(overdue=True)
    assert window.size == INITIAL_SIZE // 2
    window.reset(overdue=False)
    assert window.size == INITIAL_SIZE


def test_a_broker_that_is_away_is_tried_again_soon_and_never_later_than_in_seconds() -> None:
    patience = ReconnectBackoff()
    waits = [patience.next_delay(None, duplicate=False) for _ in range(50)]
    assert max(waits) <= MAX_DELAY_S
    assert patience.next_delay(10.0, duplicate=False) <= 1.0


def test_who_finds_another_in_its_place_comes_back_ever_later_until_the_place_is_free() -> None:
    patience = ReconnectBackoff()
    waits = [patience.next_delay(None, duplicate=True) for _ in range(10)]
    assert MIN_DUPLICATE_DELAY_S * 0.8 <= waits[0] <= MIN_DUPLICATE_DELAY_S * 1.2
    assert MAX_DUPLICATE_DELAY_S * 0.8 <= waits[-1] <= MAX_DUPLICATE_DELAY_S * 1.2
    patience.next_delay(10.0, duplicate=False)
    assert patience.next_delay(None, duplicate=True) <= MIN_DUPLICATE_DELAY_S * 1.2
