"""Window arithmetic: half-open everywhere, the same whatever the order of arrival."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.series import AlarmSeries
from forecasting.window import WindowSpec, coverage, grid, grid_floor, input_window, label_window

AT = datetime(2026, 11, 16, 8, tzinfo=UTC)
SPEC = WindowSpec(timedelta(hours=10), timedelta(hours=2))
QUARTER = timedelta(minutes=15)


def test_event_at_the_boundary_is_a_label_not_a_feature() -> None:
    series = AlarmSeries.from_alarms([(AT, 1)])
    assert len(input_window(series, AT, SPEC)) == 0
    assert len(label_window(series, AT, SPEC)) == 1


def test_event_at_the_start_of_the_window_is_a_feature() -> None:
    series = AlarmSeries.from_alarms(
        [(AT - SPEC.lookback, 1), (AT - SPEC.lookback - timedelta(microseconds=1), 2)]
    )
    assert input_window(series, AT, SPEC).codes.tolist() == [1]


def test_event_at_the_end_of_the_horizon_is_outside_it() -> None:
    series = AlarmSeries.from_alarms([(AT + SPEC.horizon, 1)])
    assert len(label_window(series, AT, SPEC)) == 0


alarms = st.lists(st.tuples(st.integers(-900, 300).map(lambda m: AT + timedelta(minutes=m)), st.integers(0, 5)))


@given(alarms, st.randoms())
def test_any_order_of_arrival_gives_the_same_window(raised: list[tuple[datetime, int]], chance: object) -> None:
    shuffled = list(raised)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one, two = (
        input_window(AlarmSeries.from_alarms(raised), AT, SPEC),
        input_window(AlarmSeries.from_alarms(shuffled), AT, SPEC),
    )
    assert one.times.tolist() == two.times.tolist()
    assert one.codes.tolist() == two.codes.tolist()


@given(alarms)
def test_evidence_and_horizon_share_no_event_and_leave_none_out_between_them(
    raised: list[tuple[datetime, int]],
) -> None:
    series = AlarmSeries.from_alarms(raised)
    inside = [at for at, _ in raised if AT - SPEC.lookback <= at < AT + SPEC.horizon]
    assert len(input_window(series, AT, SPEC)) + len(label_window(series, AT, SPEC)) == len(inside)


def test_the_grid_is_fixed_in_time_not_in_the_asker() -> None:
    assert grid_floor(AT + timedelta(minutes=14, seconds=59), QUARTER) == AT
    assert list(grid(AT - timedelta(seconds=1), AT + QUARTER, QUARTER)) == [AT, AT + QUARTER]
    assert list(grid(AT + timedelta(seconds=1), AT + timedelta(seconds=2), QUARTER)) == []


@pytest.mark.parametrize(
    ("heard", "deaf", "share"),
    [
        (None, [], 0.0),
        ((AT - timedelta(hours=20), AT), [], 1.0),
        ((AT - timedelta(hours=5), AT), [], 0.5),
        ((AT - timedelta(hours=20), AT - timedelta(hours=1)), [], 0.9),
        ((AT - timedelta(hours=20), AT - timedelta(hours=11)), [], 0.0),
        ((AT - timedelta(hours=20), AT), [(AT - timedelta(hours=4), AT - timedelta(hours=2))], 0.8),
        (
            (AT - timedelta(hours=20), AT),
            [
                (AT - timedelta(hours=4), AT - timedelta(hours=2)),
                (AT - timedelta(hours=3), AT + timedelta(hours=9)),
            ],
            0.6,
        ),
    ],
)
def test_coverage_is_the_share_of_the_window_in_which_the_machine_was_heard(
    heard: tuple[datetime, datetime] | None, deaf: list[tuple[datetime, datetime]], share: float
) -> None:
    assert coverage(AT, SPEC, observed=heard, unobserved=deaf) == pytest.approx(share)


def test_a_window_without_length_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        WindowSpec(timedelta(0), timedelta(hours=1))
