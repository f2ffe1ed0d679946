"""Figures of a scoreboard are what the definitions give, however they are added up."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from service.learning.metrics import average_precision, brier, brier_skill, f1, reliability
from service.scoring.scores import ScoreTable, concat, count, summarize

DAY, QUARTER = 86_400_000_000, 900_000_000
NAN = float("nan")


def sheet(
    rows: int = 200, codes: tuple[int, ...] = (26, 139, 140), *, seed: int = 0, version: int = 1
) -> ScoreTable:
    rng = np.random.default_rng(seed)
    shape = (rows, len(codes))
    said = rng.random(shape, dtype=np.float32)
    rate = rng.random(shape, dtype=np.float32) * np.float32(0.6)
    return ScoreTable(
        codes=np.array(codes),
        version=np.full(rows, version),
        at=20_000 * DAY + np.arange(rows) * QUARTER,
        horizon=np.full(rows, 32 * QUARTER),
        revision_count=np.zeros(rows, dtype=np.int64),
        status=np.full(rows, "ok"),
        observed=np.ones(rows, dtype=np.bool_),
        is_target=np.ones(shape, dtype=np.bool_),
        probability=said,
        base_rate=rate,
        predicted=said >= 0.5,
        occurred=rng.random(shape) < said,
        persisted=rng.random(shape) < 0.4,
        base_rate_predicted=rate >= 0.5,
    )


def mean(values: NDArray[np.float64]) -> float:
    return float(np.nanmean(values))


def test_figures_are_those_of_the_definitions() -> None:
    one = sheet()
    line = summarize(count(one).total)
    model, hits = line.model, int((one.predicted & one.occurred).sum())
    assert model.precision == pytest.approx(hits / one.predicted.sum(), abs=1e-4)
    assert model.recall == pytest.approx(hits / one.occurred.sum(), abs=1e-4)
    assert model.brier == pytest.approx(brier(one.occurred, one.probability).mean(), abs=1e-4)
    assert model.average_precision == pytest.approx(
        mean(average_precision(one.occurred, one.probability)), abs=1e-4
    )
    curve = reliability(one.occurred, one.probability)
    assert model.calibration_error == pytest.approx(curve.expected_calibration_error, abs=1e-4)
    assert [one.pairs for one in model.reliability] == curve.count.tolist()
    assert [one.predicted for one in model.reliability] == pytest.approx(curve.forecast.tolist(), abs=1e-4)
    assert line.persistence.precision == pytest.approx(
        (one.persisted & one.occurred).sum() / one.persisted.sum(), abs=1e-4
    )
    certain = one.persisted.astype(np.float32)
    assert line.persistence.brier == pytest.approx(brier(one.occurred, certain).mean(), abs=1e-4)
    assert line.persistence.average_precision == pytest.approx(
        mean(average_precision(one.occurred, certain)), abs=1e-4
    )
    assert line.persistence.brier_skill == pytest.approx(
        1 - brier(one.occurred, certain).sum() / brier(one.occurred, one.base_rate).sum(), abs=1e-4
    )
    curve = reliability(one.occurred, certain)
    assert line.persistence.calibration_error == pytest.approx(curve.expected_calibration_error, abs=1e-4)
    assert [(one.predicted, one.pairs) for one in line.persistence.reliability] == [
        (0, curve.count[0]),
        (1, curve.count[9]),
    ]
    assert line.base_rate.average_precision == pytest.approx(
        mean(average_precision(one.occurred, one.base_rate)), abs=1e-4
    )
    assert line.base_rate.brier == pytest.approx(brier(one.occurred, one.base_rate).mean(), abs=1e-4)
    assert (line.base_rate.brier_skill, line.base_rate.predicted) == (0, int(one.base_rate_predicted.sum()))
    assert (line.forecasts, line.days, model.pairs, model.hits) == (200, 3, 600, hits)


def test_each_code_has_its_own_figures() -> None:
    one, counted = sheet(), count(sheet())
    for column in range(3):
        line = summarize(counted.for_code(column))
        assert line.model.f1 == pytest.approx(f1(one.occurred, one.predicted)[column], abs=1e-4)
        assert line.model.brier_skill == pytest.approx(
            1 - brier(one.occurred, one.probability)[column] / brier(one.occurred, one.base_rate)[column], abs=1e-4
        )
        assert (line.forecasts, line.days) == (200, 3)


def test_a_constant_base_rate_gives_the_brier_skill_of_the_exam() -> None:
    rate = np.array([0.2, 0.4, 0.6], dtype=np.float32)
    one = replace(sheet(), base_rate=np.broadcast_to(rate, (200, 3)))
    assert summarize(count(one).total).model.brier_skill == pytest.approx(
        brier_skill(one.occurred, one.probability, rate), abs=1e-4
    )


def test_unheard_forecasts_are_counted_and_left_out() -> None:
    one = sheet()
    heard = np.arange(200) >= 96
    line = summarize(count(replace(one, observed=heard)).total)
    rest = summarize(count(rows(one, heard)).total)
    assert (line.forecasts, line.unobserved, line.days) == (104, 96, 2)
    assert line.model == rest.model


def test_forecasts_without_a_base_rate_are_left_out_of_the_comparison_with_it_only() -> None:
    one = sheet()
    young = np.arange(200) < 50
    rate = one.base_rate.copy()
    rate[young] = NAN
    line, grown = summarize(count(replace(one, base_rate=rate)).total), summarize(count(rows(one, ~young)).total)
    assert (line.model.pairs, line.base_rate.pairs) == (600, 450)
    assert line.base_rate.brier == grown.base_rate.brier
    assert line.model.brier_skill == grown.model.brier_skill
    assert line.model.brier == summarize(count(one).total).model.brier


def test_versions_with_other_codes_stand_in_one_sheet_each_code_scored_where_it_was_asked_about() -> None:
    old = sheet(100, (139, 26))
    new = sheet(100, (139, 26, 150), seed=1, version=2)
    new = replace(new, at=old.at + 100 * QUARTER)
    together = concat([new, old])
    assert together.codes.tolist() == [26, 139, 150]
    assert np.all(np.diff(together.at) > 0)
    counted = count(together)
    assert summarize(counted.for_code(2)).model == summarize(count(new).for_code(2)).model
    assert (summarize(counted.for_code(2)).forecasts, summarize(counted.for_code(1)).forecasts) == (100, 200)
    assert counted.for_code(1).pairs[0, :7] == pytest.approx(
        (count(old).for_code(0) + count(new).for_code(0)).pairs[0, :7]
    )
    assert summarize(counted.total).model.pairs == 500


def test_where_nothing_came_or_was_announced_there_is_no_figure_instead_of_a_wrong_one() -> None:
    quiet = np.zeros((200, 3), dtype=np.bool_)
    silent = replace(sheet(), occurred=quiet, predicted=quiet, base_rate=np.zeros((200, 3), dtype=np.float32))
    model = summarize(count(silent).total).model
    assert (model.precision, model.recall, model.f1, model.average_precision, model.brier_skill) == (None,) * 5
    assert model.brier is not None


def test_an_empty_sheet_has_no_figures() -> None:
    line = summarize(count(rows(sheet(), np.zeros(200, dtype=np.bool_))).total)
    assert (line.forecasts, line.days, line.model.brier, line.model.reliability) == (0, 0, None, ())


def test_figures_of_cold_codes_leave_out_what_occurred_in_the_horizon_before() -> None:
    one = sheet(400)
    cold = ~np.vstack([np.ones((32, 3), dtype=np.bool_), one.occurred[:-32]])
    line = summarize(count(one).total)
    areas = [
        average_precision(one.occurred[rows, c, None], one.probability[rows, c, None])
        for c, rows in enumerate(cold.T)
    ]
    assert line.model.cold_average_precision == pytest.approx(mean(np.array(areas)), abs=1e-4)
    own, base = (np.square(said - one.occurred)[cold].sum() for said in (one.probability, one.base_rate))
    assert line.model.cold_brier_skill == pytest.approx(1 - own / base, abs=1e-4)
    assert line.base_rate.cold_brier_skill == 0


def test_notifications_are_counted_by_machine_day_for_every_forecaster() -> None:
    one = replace(sheet(96 * 2, (26,)), occurred=np.zeros((192, 1), dtype=np.bool_))
    said = np.zeros((192, 1), dtype=np.float32)
    said[[10, 100, 150]] = 0.7
    one.occurred[80:112] = True
    line = summarize(count(replace(one, probability=said, persisted=one.occurred, base_rate=said * 0)).total)
    model = line.model
    assert (model.notifications, model.notifications_per_machine_day) == (3, 1.5)
    assert model.notification_precision == pytest.approx(1 / 3, abs=1e-4)
    assert (model.onsets, model.onsets_announced, model.median_lead_minutes) == (1, 1, 172.5)
    assert (line.persistence.notifications, line.persistence.notification_precision) == (1, 1)
    assert (line.base_rate.notifications, line.base_rate.notification_precision) == (0, None)


def rows(one: ScoreTable, which: NDArray[np.bool_]) -> ScoreTable:
    return ScoreTable(**{name: value if name == "codes" else value[which] for name, value in vars(one).items()})


@pytest.mark.parametrize("seed", range(20))
def test_average_precision_with_ties_and_gaps_is_that_of_the_definition(seed: int) -> None:
    """A few distinct scores, some never, some always said, and codes that not every forecast was asked about."""
    rng = np.random.default_rng(seed)
    rows_made, codes = int(rng.integers(1, 40)), (5, 6, 7, 8)
    one = sheet(rows_made, codes, seed=seed)
    said = rng.choice(np.array([0, 0.25, 0.5, 1], dtype=np.float32), size=(rows_made, 4))
    asked = rng.random((rows_made, 4)) < (1 if seed % 2 else 0.7)
    counts = count(replace(one, probability=said, is_target=asked))
    for column in range(4):
        rows_asked = asked[:, column]
        labels, scores = one.occurred[rows_asked, column, None], said[rows_asked, column, None]
        expected = average_precision(labels, scores)[0]
        got = summarize(counts.for_code(column)).model.average_precision
        assert got == (None if np.isnan(expected) else pytest.approx(expected, abs=1e-4))
