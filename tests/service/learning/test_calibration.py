"""Calibration makes probabilities honest, and thresholds pay."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.calibration import Calibration
from forecasting.network import sigmoid
from service.learning.calibration import fit, thresholds
from service.learning.metrics import brier, f1, reliability


def drawn(seed: int, count: int = 4000, codes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and outcomes that come as often as the logits say."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-1.0, 1.5, (count, codes)).astype(np.float32)
    return logits, rng.random((count, codes)) < sigmoid(logits)


def test_bent_probabilities_become_honest() -> None:
    logits, labels = drawn(0, count=100_000)
    bent = (0.3 * logits + 1.2).astype(np.float32)
    before, after = sigmoid(bent), fit(bent, labels).probabilities(bent)
    assert reliability(labels, before).expected_calibration_error > 0.1
    assert reliability(labels, after).expected_calibration_error < 0.02
    assert np.all(brier(labels, after) < brier(labels, before))


def test_each_code_gets_its_own_curve() -> None:
    logits, labels = drawn(1, count=100_000)
    bent = (logits * [0.3, 1.0, 3.0] + [2.0, 0.0, -1.0]).astype(np.float32)
    curve = fit(bent, labels)
    assert np.allclose(curve.scale, [1 / 0.3, 1.0, 1 / 3.0], rtol=0.25)


def test_a_few_days_do_not_talk_a_good_model_out_of_what_it_says() -> None:
    rng = np.random.default_rng(4)
    logits = rng.normal(-1.0, 1.5, (100, 15)).astype(np.float32)
    days = np.repeat(rng.random((13, 15)), 8, axis=0)[:100]  # what came in one hour came in the next ones too
    labels = days < sigmoid(logits)
    curve = fit(logits, labels)
    assert np.all(np.abs(curve.scale - 1) < 0.5)
    assert np.all(np.abs(curve.shift) < 0.8)


def test_code_with_few_windows_stays_close_to_the_curve_of_all_codes() -> None:
    logits, labels = drawn(2, count=300)
    labels[:, 2] = False
    labels[0, 2] = True
    shared = fit(logits, labels, shrinkage=1e9)
    assert np.ptp(shared.scale) < 1e-3
    own = fit(logits, labels)
    assert own.shift[2] < own.shift[0]
    assert np.all(np.isfinite(own.scale))


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 30), rate=st.floats(0, 1), width=st.floats(0, 1e4), seed=st.integers(0, 999))
def test_any_windows_give_finite_curves_that_keep_ranks(count: int, rate: float, width: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = (rng.normal(size=(count, 3)) * width).astype(np.float32)
    curve = fit(logits, rng.random((count, 3)) < rate)
    assert np.all(np.isfinite(curve.scale)) and np.all(np.isfinite(curve.shift))  # noqa: PT018
    assert np.all(curve.scale > 0)


def test_without_windows_or_with_one_kind_of_outcome_the_model_is_left_as_it_is() -> None:
    logits, labels = drawn(3, count=50)
    for chosen, outcome in (
        (logits[:0], labels[:0]),
        (logits, np.zeros_like(labels)),
        (logits, np.ones_like(labels)),
    ):
        curve = fit(chosen, outcome)
        assert np.array_equal(curve.scale, Calibration.identity(3).scale)
        assert np.array_equal(curve.shift, Calibration.identity(3).shift)


def test_weights_count_a_window_as_many_times() -> None:
    logits, labels = drawn(4, count=400)
    twice = np.where(np.arange(400) < 200, 2.0, 1.0)[:, None]
    doubled = fit(np.concatenate([logits, logits[:200]]), np.concatenate([labels, labels[:200]]))
    weighted = fit(logits, labels, weights=twice)
    assert np.allclose(doubled.scale, weighted.scale, atol=1e-4)
    assert np.allclose(doubled.shift, weighted.shift, atol=1e-4)


def test_threshold_gives_a_better_f1_than_a_half_where_alarms_are_rare() -> None:
    logits, labels = drawn(5)
    probabilities = sigmoid(logits - 2)
    chosen = thresholds([probabilities], [labels])
    assert np.all(f1(labels, probabilities >= chosen) > f1(labels, probabilities >= 0.5))


def test_threshold_serves_the_mean_over_machines_not_the_largest() -> None:
    rng = np.random.default_rng(6)
    low = rng.uniform(0.1, 0.2, (1000, 1)).astype(np.float32)
    often = np.ones((1000, 1), dtype=np.bool_)
    few = np.array([[0.9], [0.9], [0.15], [0.15], [0.15]], dtype=np.float32)
    came = np.array([[1], [1], [0], [0], [0]], dtype=np.bool_)
    assert thresholds([low], [often])[0] <= 0.1
    assert thresholds([low, few, few, few, few, few], [often, *[came] * 5])[0] > 0.15


def test_expected_outcomes_choose_nearly_the_same_threshold_as_many_real_ones() -> None:
    logits, labels = drawn(7, count=20_000, codes=1)
    probabilities = sigmoid(logits)
    assert abs(thresholds([probabilities], [labels])[0] - thresholds([probabilities], [probabilities])[0]) < 0.05


def test_code_that_never_came_gets_the_mean_threshold_and_a_fleet_without_alarms_a_half() -> None:
    probabilities = np.array([[0.9, 0.3], [0.1, 0.2]], dtype=np.float32)
    labels = np.array([[1, 0], [0, 0]], dtype=np.bool_)
    chosen = thresholds([probabilities], [labels])
    assert chosen[1] == chosen[0]
    assert thresholds([probabilities], [np.zeros_like(labels)]).tolist() == [0.5, 0.5]
