"""Scores on drawn days are the plain scores of an exam in which those days came more often."""

from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.learning import metrics, model_comparison

EXAMS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def exam(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few windows and few distinct scores, so that ties and silent codes are common."""
    windows, codes, steps = rng.integers(1, 40), rng.integers(0, 5), rng.integers(1, 8)
    labels = rng.random((windows, codes)) < rng.random(codes) * 0.6
    scores = rng.integers(0, steps, (windows, codes)) / steps
    return labels, scores, rng.integers(0, 6, windows)


@given(EXAMS)
def test_average_precision_with_equal_weights_is_that_of_the_metrics(rng: np.random.Generator) -> None:
    labels, scores, day = exam(rng)
    drawn = model_comparison.resampled_average_precision(labels, scores, day, np.ones((6, 1)))
    assert drawn[:, 0] == pytest.approx(metrics.average_precision(labels, scores), nan_ok=True)


@given(EXAMS)
def test_a_day_of_weight_two_counts_as_if_it_had_come_twice(rng: np.random.Generator) -> None:
    labels, scores, day = exam(rng)
    weights = rng.integers(1, 4, 6)
    often = np.repeat(np.arange(len(day)), weights[day])
    column = weights[:, None].astype(np.float64)
    drawn = model_comparison.resampled_average_precision(labels, scores, day, column)[:, 0]
    assert drawn == pytest.approx(metrics.average_precision(labels[often], scores[often]), nan_ok=True)
    rate = np.full(labels.shape[1], 0.3)
    if labels.shape[1]:
        skill = model_comparison.resampled_brier_skill(labels, scores, rate, day, column)[0]
        assert skill == pytest.approx(metrics.brier_skill(labels[often], scores[often], rate))


def test_brier_skill_of_a_base_rate_that_is_never_wrong_is_not_a_number() -> None:
    silent, day = np.zeros((3, 1), dtype=np.bool_), np.zeros(3, dtype=np.intp)
    skill = model_comparison.resampled_brier_skill(silent, np.ones((3, 1)), np.zeros(1), day, np.ones((1, 2)))
    assert np.isnan(skill).all()


def test_the_first_draw_is_the_exam_as_it_was_and_no_day_is_ever_left_out() -> None:
    weights = model_comparison.day_weights(5, 100, np.random.default_rng(0))
    assert weights.shape == (5, 101)
    assert np.all(weights[:, 0] == 1)
    assert np.all(weights > 0)


@pytest.mark.parametrize("days", [3, 10, 60])
def test_corrected_draws_of_a_mean_spread_like_the_mean_itself(days: int) -> None:
    rng = np.random.default_rng(days)
    values = rng.normal(size=days)
    weights = model_comparison.day_weights(days, 40_000, rng)[:, 1:]
    spread = np.std(values @ weights / weights.sum(axis=0)) * model_comparison.variance_correction(
        np.array([days])
    )
    assert spread == pytest.approx(values.std(ddof=1) / sqrt(days), rel=0.03)


def test_codes_of_a_single_day_widen_the_correction_and_alone_make_it_infinite() -> None:
    frequent = model_comparison.variance_correction(np.array([30, 30, 30]))
    assert frequent == pytest.approx(sqrt(31 / 29))
    assert model_comparison.variance_correction(np.array([30, 30, 30, 0])) == frequent
    assert model_comparison.variance_correction(np.array([30, 30, 1])) > 2
    assert model_comparison.variance_correction(np.array([1, 1, 0])) == inf
    assert model_comparison.variance_correction(np.array([], dtype=np.intp)) == inf


@pytest.mark.parametrize(
    ("error", "freedom", "tabled"),
    [(0.05, 6, 1.943), (0.005, 6, 3.707), (0.001, 13, 3.852), (0.0005, 40, 3.551), (0.025, 1e9, 1.960)],
)
def test_quantile_is_that_of_the_tables_of_student(error: float, freedom: float, tabled: float) -> None:
    assert model_comparison.student_t_quantile(error, freedom) == pytest.approx(tabled, rel=0.01)
