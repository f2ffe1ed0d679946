"""Windows are cut where they should be, and no outcome leaks from one part into another."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forecasting.features import alarm_counts
from forecasting.history import HistorySpec
from forecasting.ragged import FleetSeries
from forecasting.series import AlarmSeries, from_us, to_us
from forecasting.vocabulary import Columns
from forecasting.window import WindowSpec, coverage, grid, input_window, label_window
from service.learning.dataset import OTHER, Split, covered_moments, split, windows
from service.learning.windows import FAR, MAIN, NEAR, UNKNOWN

START = datetime(2026, 1, 5, tzinfo=UTC)
SPEC = WindowSpec(lookback=timedelta(hours=6), horizon=timedelta(hours=2))
ALARMS = st.lists(
    st.tuples(st.integers(0, 40 * 60).map(lambda minute: START + timedelta(minutes=minute)), st.integers(1, 5)),
    max_size=80,
)


def multi_hot(happened: AlarmSeries, columns: Columns) -> NDArray[np.bool_]:
    """Return which target codes are among these alarms; codes that are no targets leave no trace."""
    held = np.zeros(columns.size + 1, dtype=np.bool_)
    held[columns.index(happened.codes)] = True
    return held[:-1]


def hours(*values: float) -> NDArray[np.int64]:
    return np.array([to_us(START + timedelta(hours=value)) for value in values], dtype=np.int64)


@settings(max_examples=200, deadline=None)
@given(alarms=ALARMS, targets=st.lists(st.integers(1, 7), unique=True, max_size=4))
def test_windows_hold_what_serving_would_see(alarms: list[tuple[datetime, int]], targets: list[int]) -> None:
    series = AlarmSeries.from_alarms(alarms)
    at = hours(6, 7.5, 13, 30)
    cut = windows(series, at, SPEC, since=START)
    inputs, outputs = Columns((2, 1, 9)), Columns(tuple(targets))
    for row, asked in enumerate(map(from_us, at)):
        seen = input_window(series, asked, SPEC)
        assert np.array_equal(cut.inputs(inputs)[row], alarm_counts(seen, inputs))
        assert cut.counts[row].sum() == FleetSeries.from_series([seen]).run_starts.sum()
        assert np.array_equal(cut.labels(outputs)[row], multi_hot(label_window(series, asked, SPEC), outputs))


@settings(max_examples=200, deadline=None)
@given(alarms=ALARMS, chosen=st.sets(st.integers(1, 5)))
def test_codes_that_are_not_chosen_still_count_in_the_shares_of_those_that_are(
    alarms: list[tuple[datetime, int]], chosen: set[int]
) -> None:
    series = AlarmSeries.from_alarms(alarms)
    at = hours(6, 7.5, 13, 30)
    kept = np.intersect1d(series.codes, sorted(chosen))
    cut = windows(series, at, SPEC, since=START, history=HistorySpec(), tracked=kept.tolist(), chosen=kept)
    assert set(cut.codes.tolist()) <= {OTHER, *chosen}
    assert set(cut.tracked.tolist()) <= chosen
    columns = Columns(tuple(sorted(chosen)))
    for row, asked in enumerate(map(from_us, at)):
        seen = input_window(series, asked, SPEC)
        assert np.array_equal(cut.inputs(columns)[row], alarm_counts(seen, columns))
        assert cut.counts[row].sum() == FleetSeries.from_series([seen]).run_starts.sum()
        assert np.array_equal(cut.labels(columns)[row], multi_hot(label_window(series, asked, SPEC), columns))
    assert not cut.labels(Columns((OTHER,))).any()


def test_alarm_at_the_boundary_is_a_label_and_not_a_feature() -> None:
    series = AlarmSeries.from_alarms([(START + timedelta(hours=6), 3)])
    cut = windows(series, hours(6), SPEC, since=START)
    assert cut.counts.tolist() == [[0]]
    assert cut.outcomes.tolist() == [[True]]


def test_window_without_alarms_is_the_zero_vector_and_counts() -> None:
    series = AlarmSeries.from_alarms([(START, 3), (START + timedelta(hours=50), 3)])
    heard = (START, START + timedelta(hours=50))
    moments = covered_moments(heard, SPEC)
    cut = windows(series, moments, SPEC, since=START)
    assert len(moments) == 46
    assert cut.inputs(Columns((3,))).sum() == 4
    assert len(cut) == 46


def test_moments_need_half_of_their_evidence_and_all_of_their_horizon_heard() -> None:
    heard = (START, START + timedelta(hours=12))
    assert np.array_equal(covered_moments(heard, SPEC), hours(3, 4, 5, 6, 7, 8, 9, 10))


def test_moments_whose_horizon_was_deaf_are_left_out() -> None:
    heard = (START, START + timedelta(hours=12))
    deaf = [(START + timedelta(hours=7, minutes=10), START + timedelta(hours=7, minutes=20))]
    assert np.array_equal(covered_moments(heard, SPEC, unobserved=deaf), hours(3, 4, 5, 8, 9, 10))


@settings(max_examples=300, deadline=None)
@given(
    begin=st.integers(0, 300),
    length=st.integers(0, 2000),
    unobserved=st.lists(st.tuples(st.integers(-100, 2400), st.integers(0, 400)), max_size=6),
    min_coverage=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_moments_are_those_whose_coverage_a_live_forecast_would_call_enough(
    begin: int, length: int, unobserved: list[tuple[int, int]], min_coverage: float
) -> None:
    def minute(value: int) -> datetime:
        return START + timedelta(minutes=value)

    heard = (minute(begin), minute(begin + length))
    lost = [(minute(first), minute(first + long)) for first, long in unobserved]
    wanted = [
        at
        for at in grid(heard[0], heard[1] - SPEC.horizon, timedelta(hours=1))
        if coverage(at, SPEC, observed=heard, unobserved=lost) >= min_coverage
        and not any(first < at + SPEC.horizon and end > at for first, end in lost)
    ]
    found = covered_moments(heard, SPEC, unobserved=lost, min_coverage=min_coverage)
    assert [from_us(at) for at in found] == wanted


@given(
    gaps=st.lists(st.integers(0, 5), min_size=1, max_size=80),
    exam=st.floats(0, 0.5),
    calibration=st.floats(0, 0.5),
)
def test_parts_follow_each_other_and_no_horizon_reaches_the_next_part(
    gaps: list[int], exam: float, calibration: float
) -> None:
    horizon = timedelta(hours=2)
    at = np.cumsum(gaps) * 3_600_000_000
    parts = split(at, horizon, calibration=calibration, holdout=exam)
    reach = horizon // timedelta(microseconds=1)
    together = np.concatenate([parts.train, parts.calibration, parts.holdout])
    assert np.all(np.diff(together) > 0)
    for earlier, later in (
        (parts.train, parts.calibration),
        (parts.train, parts.holdout),
        (parts.calibration, parts.holdout),
    ):
        if len(earlier) and len(later):
            assert at[earlier].max() + reach <= at[later].min()
    assert len(parts.holdout) == round(len(at) * exam)


def test_without_later_parts_nothing_is_left_out() -> None:
    parts = split(np.arange(10) * 3_600_000_000, timedelta(hours=8), calibration=0.0, holdout=0.0)
    assert parts.train == range(10)


@pytest.mark.parametrize(("calibration", "exam"), [(-0.1, 0.2), (0.6, 0.6)])
def test_impossible_shares_are_refused(calibration: float, exam: float) -> None:
    with pytest.raises(ValueError, match="Shares"):
        split(np.arange(3), timedelta(hours=1), calibration=calibration, holdout=exam)


def test_windows_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="time order"):
        split(np.array([2, 1]), timedelta(hours=1), calibration=0.0, holdout=0.5)


def test_moments_survive_the_way_through_the_windows() -> None:
    at = hours(6, 7)
    cut = windows(AlarmSeries.from_alarms([]), at, SPEC, since=START)
    assert np.array_equal(cut.at, at)


def test_the_first_horizon_with_a_code_is_known_where_it_was_observed_and_not_across_parts() -> None:
    series = AlarmSeries.from_alarms([(START + timedelta(hours=hour), 7) for hour in (40, 200)] + [(START, 1)])
    at = hours(15, 20, 33, 39, 41, 60, 190)
    spec = WindowSpec()
    cut = windows(series, at, spec, since=START, far_known=np.array([True] * 6 + [False]))
    columns = Columns((7,))
    known = cut.horizons(columns)
    assert known is not None
    assert known[:, 0].tolist() == [0, FAR, MAIN, NEAR, 0, 0, UNKNOWN]
    parts = Split(range(2), range(2, 5), range(5, 7)).cut(cut, spec.far)
    found = [part.horizons(columns) for part in parts]
    assert [one[:, 0].tolist() for one in found if one is not None] == [
        [UNKNOWN, UNKNOWN],  # within 24 hours the next part begins
        [MAIN, NEAR, UNKNOWN],
        [0, UNKNOWN],
    ]
