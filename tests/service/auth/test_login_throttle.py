"""Wrong tries wait ever longer, requests come at a steady rate, and nobody else pays for it."""

from hypothesis import given
from hypothesis import strategies as st

from service.auth.login import AttemptThrottle, BackoffPolicy
from service.http.rate_limit import TokenBuckets


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_free_tries_wait_for_nothing_and_then_the_wait_doubles_up_to_its_bound() -> None:
    clock = Clock()
    throttle = AttemptThrottle(BackoffPolicy(free_attempts=3, max_wait_s=10), clock)
    assert [throttle.attempt("maria") for _ in range(3)] == [0, 0, 0]
    waits = []
    for _ in range(6):
        waits.append(throttle.wait("maria"))
        clock.now += waits[-1]
        assert throttle.attempt("maria") == 0
    assert waits == [1, 2, 4, 8, 10, 10]
    assert throttle.wait("anna") == 0


def test_a_try_that_must_wait_is_not_counted_and_a_right_one_forgives() -> None:
    clock = Clock()
    throttle = AttemptThrottle(BackoffPolicy(free_attempts=1), clock)
    throttle.attempt("maria")
    assert [throttle.attempt("maria") for _ in range(100)] == [1.0] * 100
    clock.now = 0.5
    assert throttle.wait("maria") == 0.5
    throttle.reset("maria")
    assert throttle.attempt("maria") == 0


def test_a_try_that_is_taken_back_leaves_the_others_counted() -> None:
    throttle = AttemptThrottle(BackoffPolicy(free_attempts=2), Clock())
    for _ in range(10):
        assert throttle.attempt("maria") == 0
        throttle.refund("maria")
    throttle.attempt("maria")
    throttle.attempt("maria")
    throttle.refund("maria")
    assert [throttle.attempt("maria"), throttle.attempt("maria")] == [0, 1]
    throttle.refund("nobody")
    assert throttle.wait("nobody") == 0


def test_an_hour_without_a_try_forgives_too() -> None:
    clock = Clock()
    throttle = AttemptThrottle(BackoffPolicy(free_attempts=0, max_wait_s=7200), clock)
    for _ in range(20):
        clock.now += throttle.wait("maria")
        throttle.attempt("maria")
    clock.now += 3601
    assert throttle.wait("maria") == 1


def test_a_flood_of_names_takes_no_more_than_its_place() -> None:
    throttle = AttemptThrottle(BackoffPolicy(free_attempts=1), Clock())
    for number in range(20_000):
        throttle.attempt(f"name-{number}")
    assert len(throttle._attempts) == 10_000  # noqa: SLF001


@given(st.lists(st.floats(0, 5), max_size=200))
def test_over_any_time_no_more_is_let_through_than_the_burst_and_the_rate(pauses: list[float]) -> None:
    clock = Clock()
    buckets = TokenBuckets(rate=2, burst=5, clock=clock)
    let_through = 0
    for pause in pauses:
        clock.now += pause
        wait = buckets.take("maria")
        let_through += wait == 0
        assert let_through <= 5 + 2 * clock.now + 1e-6
        assert 0 <= wait <= 0.5
    assert buckets.take("anna") == 0


def test_who_waits_as_told_is_let_through() -> None:
    clock = Clock()
    buckets = TokenBuckets(rate=0.5, burst=1, clock=clock)
    assert buckets.take("maria") == 0
    for _ in range(5):
        clock.now += buckets.take("maria")
        assert buckets.take("maria") == 0


def test_what_is_put_back_can_be_taken_again_and_no_bucket_overflows() -> None:
    buckets = TokenBuckets(rate=1, burst=2, clock=Clock())
    for _ in range(10):
        assert buckets.take("maria") == 0
        buckets.refund("maria")
    buckets.refund("maria")
    buckets.refund("nobody")
    for who in ("maria", "nobody"):
        assert [buckets.take(who) for _ in range(3)] == [0, 0, 1]


def test_a_rate_of_nought_limits_nobody() -> None:
    buckets = TokenBuckets(rate=0, burst=10, clock=Clock())
    assert not any(buckets.take("maria") for _ in range(1000))
