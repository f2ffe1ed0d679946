"""Explanations: of the probability that is served, against the machine's own usual, in parts that sum."""

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting.attribution import Reals
from forecasting.calibration import Calibration
from forecasting.explanation import BASELINE_SPAN, Explanation, baseline_moments, explain
from forecasting.forecaster import Forecaster, ObservedSeries
from forecasting.history import HistorySpec
from forecasting.network import Layer, Network, sigmoid
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec

AT = datetime(2026, 11, 16, 8, 7, tzinfo=UTC)
SPEC = WindowSpec()
HISTORY = HistorySpec()
MACHINE_FIGURES = len(HISTORY.decays) + len(HISTORY.spans) + (HISTORY.width - HISTORY.recent) + 4
VOCABULARY = Vocabulary(inputs=(26, 137, 139, 7), targets=(139, 26, 500))
Alarms = list[tuple[datetime, int]]
ALARMS = st.lists(
    st.tuples(
        st.integers(1, 70 * 1440).map(lambda minutes: AT - timedelta(minutes=minutes)),
        st.sampled_from([26, 137, 139, 500, 999]),  # 999 is in no vocabulary, 7 never comes
    ),
    max_size=80,
)


def layers(rng: np.random.Generator, *sizes: int) -> tuple[Layer, ...]:
    return tuple(
        Layer(rng.normal(size=(out, into)).astype(np.float32), rng.normal(size=out).astype(np.float32))
        for into, out in itertools.pairwise(sizes)
    )


def random_model(seed: int, *, history: bool = True, hidden: tuple[int, ...] = (8, 6)) -> Forecaster:
    rng = np.random.default_rng(seed)
    targets = len(VOCABULARY.targets)
    own = layers(rng, HISTORY.width + MACHINE_FIGURES, 7, 5, 1) if history else ()
    return Forecaster(
        SPEC,
        VOCABULARY,
        Network(layers(rng, len(VOCABULARY.inputs), *hidden, targets), own),
        Calibration(rng.uniform(0.3, 2, targets).astype(np.float32), rng.normal(size=targets).astype(np.float32)),
        np.full(targets, 0.5, dtype=np.float32),
        HISTORY if history else None,
    )


def record(alarms: Alarms, since: datetime | None = None) -> ObservedSeries:
    return ObservedSeries(AlarmSeries.from_alarms(alarms), since or min((at for at, _ in alarms), default=AT))


def whole(why: Explanation) -> Reals:
    parts: Reals = why.alarms.sum(axis=1)
    for group in why.history or ():
        parts = parts + group
    return parts


def explain_all(model: Forecaster, its: ObservedSeries, at: datetime = AT) -> Explanation:
    return explain(model, its, at, range(len(model.vocabulary.targets)))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10_000), alarms=ALARMS, history=st.booleans())
def test_parts_sum_to_the_log_odds_served_less_the_usual_ones(seed: int, alarms: Alarms, history: bool) -> None:  # noqa: FBT001
    model, its = random_model(seed, history=history), record(alarms)
    why = explain_all(model, its)
    np.testing.assert_allclose(whole(why), why.log_odds - why.baseline_log_odds, atol=1e-9)
    served = model.probabilities([its], AT)[0]
    np.testing.assert_allclose(why.probabilities, served, atol=1e-6)
    np.testing.assert_allclose(sigmoid(why.log_odds.astype(np.float32)), served, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), alarms=ALARMS)
def test_the_usual_is_the_mean_of_what_would_have_been_said_at_past_moments(seed: int, alarms: Alarms) -> None:
    model, its = random_model(seed), record(alarms, since=AT - timedelta(days=80))
    why = explain_all(model, its)
    said = np.stack([model.probabilities([its], at)[0] for at in why.moments]).astype(np.float64)
    inside = np.clip(said, 1e-12, 1 - 1e-12)
    sure = (said > 0.001).all(axis=0) & (said < 0.999).all(axis=0)  # a float32 near 1 has lost its log-odds
    usual = np.log(inside / (1 - inside)).mean(axis=0)
    np.testing.assert_allclose(why.baseline_log_odds[sure], usual[sure], atol=1e-2)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), alarms=ALARMS)
def test_a_code_that_never_came_has_no_part(seed: int, alarms: Alarms) -> None:
    why = explain_all(random_model(seed), record(alarms))
    never = VOCABULARY.inputs.index(7)
    assert not why.alarms[:, never].any()
    if not any(code == 500 for _, code in alarms):
        assert why.history is not None
        assert why.history.recency[2] == why.history.habit[2] == 0.0


def test_a_code_that_usually_comes_and_now_does_not_has_a_part() -> None:
    alarms = [(AT - timedelta(hours=hours), 137) for hours in range(40, 28 * 24, 5)]
    model = random_model(1, history=False, hidden=())
    why = explain_all(model, record(alarms, since=AT - timedelta(days=60)))
    column = VOCABULARY.inputs.index(137)
    assert (why.shares[column], why.baseline_shares[column]) == (0.0, pytest.approx(1.0, abs=0.1))
    assert why.alarms[:, column] == pytest.approx(
        -why.baseline_shares[column] * model.calibration.scale * model.network.layers[0].weight[:, column]
    )


def test_without_hidden_layers_a_part_is_the_calibrated_weight_times_the_change_of_share() -> None:
    alarms = [(AT - timedelta(hours=hours), code) for hours, code in ((2, 26), (9, 139), (200, 26), (300, 137))]
    model = random_model(2, history=False, hidden=())
    why = explain_all(model, record(alarms, since=AT - timedelta(days=40)))
    weight = model.calibration.scale[:, None] * model.network.layers[0].weight
    np.testing.assert_allclose(why.alarms, weight * (why.shares - why.baseline_shares), rtol=1e-6)


def test_a_machine_without_a_past_is_compared_with_one_never_heard() -> None:
    model = random_model(3)
    why = explain_all(model, record([], since=AT))
    assert why.moments == []
    assert np.array_equal(why.log_odds, why.baseline_log_odds)
    assert not why.alarms.any()
    young = explain_all(model, record([(AT - timedelta(hours=5), 139)]))
    assert young.moments == []
    np.testing.assert_allclose(young.baseline_log_odds, why.log_odds)
    np.testing.assert_allclose(whole(young), young.log_odds - young.baseline_log_odds, atol=1e-9)


def test_the_usual_knows_all_hours_and_weekdays_alike_and_nothing_before_the_machine_was_heard() -> None:
    moments = baseline_moments(AT - timedelta(days=400), AT, SPEC)
    assert max(moments) < AT
    assert min(moments) >= AT - BASELINE_SPAN
    assert {sum(one.hour == hour for one in moments) for hour in range(24)} == {2, 3}
    assert {sum((AT - one).days % 7 == day for one in moments) for day in range(7)} == {8, 9}
    young = baseline_moments(AT - timedelta(days=2), AT, SPEC)
    assert min(young) >= AT - timedelta(days=2) + SPEC.lookback / 2


def test_a_past_moment_is_explained_without_what_came_after_it() -> None:
    at = AT - timedelta(days=3)
    before = [(at - timedelta(hours=hours), code) for hours in range(1, 900, 7) for code in (26, 139)]
    after = [(at + timedelta(hours=hours), 137) for hours in range(60)]
    model = random_model(4)
    since = at - timedelta(days=60)
    alone, together = (
        explain_all(model, record(before, since), at),
        explain_all(model, record(before + after, since), at),
    )
    assert np.array_equal(alone.alarms, together.alarms)
    assert np.array_equal(alone.log_odds, together.log_odds)


def test_one_target_is_explained_as_among_all() -> None:
    alarms = [(AT - timedelta(hours=hours), code) for hours in range(1, 900, 7) for code in (26, 139)]
    model, its = random_model(5), record(alarms)
    among, alone = explain_all(model, its), explain(model, its, AT, [1])
    np.testing.assert_allclose(alone.alarms[0], among.alarms[1], atol=1e-12)
    assert among.history is not None
    assert alone.history is not None
    np.testing.assert_allclose(np.concatenate(alone.history), [part[1] for part in among.history], atol=1e-12)
    assert alone.log_odds[0] == pytest.approx(among.log_odds[1])
