"""How fast events come in and how long they were on their way, by a clock that the test sets."""

import pytest

from service.ingest.stats import IngestStats
from tests.support.fake_clock import FakeClock


def test_a_rate_is_of_its_span_and_older_events_do_not_count() -> None:
    clock = FakeClock(1000.0)
    pace = IngestStats(monotonic=clock)
    clock.now += 2000
    pace.record(900)
    clock.now += 300
    pace.record(60)
    clock.now += 0.5
    pace.record(60)
    assert pace.rate(60) == 2
    assert pace.rate(900) == pytest.approx(1020 / 900)
    clock.now += 61
    assert pace.rate(60) == 0
    clock.now += 900
    assert pace.rate(900) == 0


def test_a_young_process_divides_by_its_age() -> None:
    clock = FakeClock(1000.0)
    pace = IngestStats(monotonic=clock)
    clock.now += 10
    pace.record(50)
    assert pace.rate(60) == pace.rate(900) == 5


def test_lag_is_told_as_median_and_95th_percentile_of_recent_events() -> None:
    pace = IngestStats()
    assert pace.lag() == (None, None, 0)
    pace.record(101, [n * 1_000_000 for n in range(101)])
    assert pace.lag() == (50.0, 95.0, 101)
    pace.record(20_000, [-5_000_000] * 20_000)  # an agent whose clock is ahead; the old ones are forgotten
    assert pace.lag() == (0.0, 0.0, 10_000)


def test_events_of_a_backlog_are_counted_and_no_part_of_the_lag() -> None:
    pace = IngestStats()
    pace.record(5, [1_000_000, 2_000_000], [3_601_000_000, 60_000_000])
    assert pace.lag() == (1.0, 1.0, 2)
    stored, lags, backfilled, late = pace.totals()
    assert (stored, lags.all, backfilled, late) == (5, 2, 2, 1)
