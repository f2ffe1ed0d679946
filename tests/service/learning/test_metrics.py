"""Scores mean what the paper and a careful reader say they mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.learning import metrics


def column(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.bool_)[:, None]


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    labels, announced = column(1, 1, 1, 0, 0), column(1, 0, 0, 1, 0)
    precision, recall = 1 / 2, 1 / 3
    assert metrics.f1(labels, announced)[0] == pytest.approx(2 * precision * recall / (precision + recall))


def test_label_without_a_positive_scores_nought_and_never_one() -> None:
    nothing = np.zeros((4, 1), dtype=np.bool_)
    assert metrics.f1(nothing, nothing)[0] == 0
    assert metrics.f1(nothing, ~nothing)[0] == 0


def test_macro_counts_unsupported_labels_or_leaves_them_out_as_asked() -> None:
    values, support = np.array([0.8, 0.0]), np.array([True, False])
    assert metrics.macro(values, support) == 0.8
    assert metrics.macro(values, np.ones(2, dtype=np.bool_)) == 0.4
    assert np.isnan(metrics.macro(values, support, among=np.array([False, True])))


def test_average_precision_of_a_perfect_ranking_is_one_and_of_no_ranking_the_base_rate() -> None:
    labels = column(1, 0, 1, 0, 0)
    assert metrics.average_precision(labels, np.array([[0.9], [0.1], [0.8], [0.2], [0.3]]))[0] == 1
    assert metrics.average_precision(labels, np.full((5, 1), 0.4))[0] == pytest.approx(2 / 5)
    assert np.isnan(metrics.average_precision(column(0, 0), np.zeros((2, 1)))[0])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40), st.randoms())
def test_average_precision_does_not_depend_on_the_order_of_windows(
    rows: list[tuple[bool, int]], random: "np.random.Generator"
) -> None:
    mixed = list(rows)
    random.shuffle(mixed)

    def score(pairs: list[tuple[bool, int]]) -> float:
        labels, scores = np.array(pairs).T
        return float(metrics.average_precision(labels.astype(np.bool_)[:, None], scores[:, None].astype(float))[0])

    assert score(mixed) == pytest.approx(score(rows), nan_ok=True)


def test_average_precision_sums_precision_over_the_steps_of_recall() -> None:
    labels = column(1, 0, 1, 0)
    scores = np.array([[4.0], [3.0], [2.0], [1.0]])
    assert metrics.average_precision(labels, scores)[0] == pytest.approx((1 / 1 + 2 / 3) / 2)


def test_brier_skill_is_nought_for_the_base_rate_and_one_for_the_truth() -> None:
    labels = np.random.default_rng(0).random((200, 3)) < 0.3
    rate = labels.mean(axis=0)
    assert metrics.brier_skill(labels, np.broadcast_to(rate, labels.shape), rate) == pytest.approx(0)
    assert metrics.brier_skill(labels, labels.astype(float), rate) == 1
    assert metrics.brier_skill(labels, 1 - labels.astype(float), rate) < 0


def test_brier_skill_where_the_base_rate_is_never_wrong_is_defined() -> None:
    silent = np.zeros((3, 1), dtype=np.bool_)
    assert metrics.brier_skill(silent, np.zeros((3, 1)), np.zeros(1)) == 0
    assert metrics.brier_skill(silent, np.ones((3, 1)), np.zeros(1)) == -np.inf


def test_calibration_error_is_the_distance_between_said_and_seen() -> None:
    labels = column(1, 0, 0, 0)
    curve = metrics.reliability(labels, np.full((4, 1), 0.95))
    assert curve.expected_calibration_error == pytest.approx(0.7)
    assert curve.count.tolist() == [0] * 9 + [4]
    honest = metrics.reliability(labels, np.full((4, 1), 0.25))
    assert honest.expected_calibration_error == pytest.approx(0)


def test_probability_one_falls_into_the_last_bin() -> None:
    assert metrics.reliability(column(1), np.ones((1, 1))).count[-1] == 1


def test_average_score_and_forgetting_follow_the_definition() -> None:
    matrix = np.array([[0.5, 0.1, 0.2], [0.4, 0.6, 0.2], [0.3, 0.6, 0.7]])
    assert metrics.average_score(matrix) == pytest.approx((0.3 + 0.6 + 0.7) / 3)
    assert metrics.forgetting(matrix) == pytest.approx(((0.5 - 0.3) / 0.5 + 0.0) / 2)


def test_score_that_rose_after_its_task_is_negative_forgetting() -> None:
    assert metrics.forgetting(np.array([[0.4, 0.0], [0.5, 0.9]])) == pytest.approx(-0.25)


def test_nothing_is_forgotten_of_a_task_that_never_scored() -> None:
    assert metrics.forgetting(np.array([[0.0, 0.1], [0.0, 0.2]])) == 0


def test_one_task_has_no_forgetting_and_tasks_without_a_score_are_left_out() -> None:
    assert np.isnan(metrics.forgetting(np.array([[0.5]])))
    matrix = np.array([[0.5, np.nan, 0.2], [0.25, np.nan, 0.2], [0.25, np.nan, 0.4]])
    assert metrics.forgetting(matrix) == pytest.approx(0.5)
    assert metrics.average_score(matrix) == pytest.approx(0.325)
