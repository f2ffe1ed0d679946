"""Accuracy of served forecasts, compared with the persistence and base-rate baselines.

Counts are made per machine (and version, if grouped by it) in columns of target codes; the scores of a machine, a
code or the fleet are computed from sums of counts. Precision, recall, F1, Brier score and calibration are over all
pairs of forecast and code; average precision is the mean over codes of a machine that occurred.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.scoring.notification_scores import (
    ANNOUNCED,
    NOTIFICATION_WIDTH,
    ONSETS,
    RIGHT,
    SENT,
    cold_pairs,
    median_lead_minutes,
    notification_sums,
)

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Reals = NDArray[np.float64]
BINS: Final = 10
_DAY_US: Final = 86_400_000_000


class ScoredForecaster(IntEnum):
    """The model and its baselines."""

    MODEL = 0
    PERSISTENCE = 1
    BASE_RATE = 2


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Outcomes of one machine: one row per forecast, one column per target code.

    ``horizon`` is in microseconds. ``is_target`` marks the codes that a row's version forecasts.
    ``base_rate_predicted`` is where the base rate passes the threshold; the base rate is NaN where the machine had
    no history.
    """

    codes: Counts
    version: Counts
    at: Counts
    horizon: Counts
    revision_count: Counts
    status: NDArray[np.str_]
    observed: Flags
    is_target: Flags
    probability: NDArray[np.float32]
    base_rate: NDArray[np.float32]
    predicted: Flags
    occurred: Flags
    persisted: Flags
    base_rate_predicted: Flags

    def __len__(self) -> int:
        return len(self.at)


_BY_CODE: Final = (
    "is_target", "probability", "base_rate", "predicted", "occurred", "persisted", "base_rate_predicted",
)  # fmt: skip


def concat(tables: Sequence[ScoreTable]) -> ScoreTable:
    """Return the tables of several versions as one, in time order, with the codes of all."""
    if len(tables) == 1:
        return tables[0]
    codes = np.unique(np.concatenate([table.codes for table in tables]))
    order = np.argsort(np.concatenate([table.at for table in tables]), kind="stable")
    parts = {
        field.name: np.concatenate([_expand(table, field.name, codes) for table in tables])[order]
        for field in fields(ScoreTable)
        if field.name != "codes"
    }
    return ScoreTable(codes=codes, **parts)


def _expand(table: ScoreTable, name: str, codes: Counts) -> NDArray[np.generic]:
    values: NDArray[np.generic] = getattr(table, name)
    if name not in _BY_CODE:
        return values
    expanded = np.zeros((len(values), len(codes)), dtype=values.dtype)
    expanded[:, np.searchsorted(codes, table.codes)] = values
    return expanded


def by_day(table: ScoreTable) -> Iterator[tuple[int, ScoreTable]]:
    """Yield the rows of each UTC day with the start of the day; rows are in time order."""
    days = table.at // _DAY_US
    starts = np.flatnonzero(np.diff(days, prepend=-1))
    for first, last in zip(starts, [*starts[1:], len(table)], strict=True):
        rows = {
            field.name: getattr(table, field.name)[first:last]
            for field in fields(ScoreTable)
            if field.name != "codes"
        }
        yield int(days[first]) * _DAY_US, ScoreTable(codes=table.codes, **rows)


class _SumColumn(IntEnum):
    """Columns of sums over pairs of forecast and code; calibration bins follow."""

    PAIRS = 0
    POSITIVES = 1
    PREDICTED = 2
    HITS = 3
    SQUARED = 4
    COMPARED_SQUARED = 5  # squared error where there is a base rate …
    COMPARED_BASE_SQUARED = 6  # … and that of the base rate
    AVERAGE_PRECISION = 7
    RANKED = 8
    COLD_SQUARED = 9  # the same of codes that had not occurred for a horizon, where there is a base rate
    COLD_BASE_SQUARED = 10
    COLD_AVERAGE_PRECISION = 11
    COLD_RANKED = 12
    BINS = 13


_NOTIFICATIONS: Final = _SumColumn.BINS + 3 * BINS  # per bin: pairs, sum of probabilities, occurrences
_WIDTH: Final = _NOTIFICATIONS + NOTIFICATION_WIDTH


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums that can be added; the last axis is the code, unless summed over.

    ``rows`` counts forecasts: scored, machine-days, re-scored, unobserved, warming up, stale.
    """

    pairs: Reals
    rows: Counts

    def __add__(self, other: "ScoreSums") -> "ScoreSums":
        return ScoreSums(self.pairs + other.pairs, self.rows + other.rows)


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """The sums of a score table: total and per code."""

    codes: Counts
    total: ScoreSums
    by_code: ScoreSums

    def for_code(self, column: int) -> ScoreSums:
        return ScoreSums(self.by_code.pairs[..., column], self.by_code.rows[..., column])


def count(table: ScoreTable) -> ScoreCounts:
    """Sum up a table; rows with an unobserved horizon are only counted."""
    rows = table.observed
    is_target, occurred, base = table.is_target[rows], table.occurred[rows], table.base_rate[rows]
    compared, base_rate, persisted = is_target & ~np.isnan(base), np.nan_to_num(base), table.persisted[rows]
    pairs = np.zeros((len(ScoredForecaster), _WIDTH, len(table.codes)))
    model, persistence, baseline = pairs
    _sum_decisions(model, table.predicted[rows], is_target, occurred)
    _sum_decisions(persistence, persisted, is_target, occurred)
    _sum_decisions(baseline, table.base_rate_predicted[rows], compared, occurred)
    _sum_probabilities(model, table.probability[rows], is_target, occurred, compared)
    _sum_binary(persistence, persisted != occurred, compared)
    _sum_probabilities(baseline, base_rate, compared, occurred, compared)
    pairs[:, _SumColumn.COMPARED_BASE_SQUARED] = baseline[_SumColumn.SQUARED]
    at, horizon = table.at[rows], table.horizon[rows]
    cold = cold_pairs(at, occurred, is_target, horizon)
    for sums, said, there in (
        (model, table.probability[rows], is_target),
        (persistence, persisted.astype(np.float32), is_target),
        (baseline, base_rate, compared),
    ):
        sums[_NOTIFICATIONS:] = notification_sums(at, said, occurred, there, horizon)
        _sum_cold(sums, said, occurred, cold & there, base_rate, cold & compared)
    everything = np.ones((len(table), 1), dtype=np.bool_)
    return ScoreCounts(
        table.codes,
        ScoreSums(pairs.sum(axis=-1), _count_rows(table, everything)[:, 0]),
        ScoreSums(pairs, _count_rows(table, table.is_target)),
    )


def _sum_decisions(sums: Reals, predicted: Flags, is_target: Flags, occurred: Flags) -> None:
    positive = occurred & is_target
    sums[_SumColumn.PAIRS] = is_target.sum(axis=0)
    sums[_SumColumn.POSITIVES] = positive.sum(axis=0)
    sums[_SumColumn.PREDICTED] = (predicted & is_target).sum(axis=0)
    sums[_SumColumn.HITS] = (predicted & positive).sum(axis=0)


def _sum_probabilities(
    sums: Reals, probability: NDArray[np.float32], is_target: Flags, occurred: Flags, compared: Flags
) -> None:
    codes = is_target.shape[1]
    squared, positive = np.square(probability - occurred), occurred & is_target
    sums[_SumColumn.SQUARED] = np.sum(squared * is_target, axis=0, dtype=np.float64)
    sums[_SumColumn.COMPARED_SQUARED] = np.sum(squared * compared, axis=0, dtype=np.float64)
    ranked = _average_precision(probability, positive, is_target)
    sums[_SumColumn.AVERAGE_PRECISION] = np.nan_to_num(ranked)
    sums[_SumColumn.RANKED] = ~np.isnan(ranked)
    index = np.minimum((probability * BINS).astype(np.int32), BINS - 1) * np.int32(codes)
    index += np.arange(codes, dtype=np.int32)
    index[~is_target] = BINS * codes  # pairs that are not forecast go past the last bin
    for part, weights in enumerate((None, probability.ravel(), positive.ravel())):
        binned = np.bincount(index.ravel(), weights, minlength=BINS * codes + 1)[:-1]
        sums[_SumColumn.BINS + part * BINS : _SumColumn.BINS + (part + 1) * BINS] = binned.reshape(BINS, codes)


def _sum_cold(
    sums: Reals,
    probability: NDArray[np.float32],
    occurred: Flags,
    cold: Flags,
    base_rate: NDArray[np.float32],
    compared: Flags,
) -> None:
    for column, said in ((_SumColumn.COLD_SQUARED, probability), (_SumColumn.COLD_BASE_SQUARED, base_rate)):
        sums[column] = np.sum(np.square(said - occurred) * compared, axis=0, dtype=np.float64)
    ranked = _average_precision(probability, occurred & cold, cold)
    sums[_SumColumn.COLD_AVERAGE_PRECISION] = np.nan_to_num(ranked)
    sums[_SumColumn.COLD_RANKED] = ~np.isnan(ranked)


def _sum_binary(sums: Reals, wrong: Flags, compared: Flags) -> None:
    """Derive the remaining sums of a forecaster whose probability is only 0 or 1."""
    pairs, positives, predicted, hits = sums[: _SumColumn.SQUARED]
    sums[_SumColumn.SQUARED] = predicted + positives - 2 * hits
    sums[_SumColumn.COMPARED_SQUARED] = (wrong & compared).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.nan_to_num(hits * hits / predicted)  # two steps: what was predicted, then the rest
        ranked = (top + (positives - hits) * positives / pairs) / positives
    sums[_SumColumn.AVERAGE_PRECISION] = np.nan_to_num(ranked)
    sums[_SumColumn.RANKED] = positives > 0
    no, yes = _SumColumn.BINS, _SumColumn.BINS + BINS - 1
    sums[no], sums[yes] = pairs - predicted, predicted
    sums[yes + BINS] = predicted
    sums[no + 2 * BINS], sums[yes + 2 * BINS] = positives - hits, hits


def _average_precision(probability: NDArray[np.float32], positive: Flags, is_target: Flags) -> Reals:
    """Return the average precision of each code.

    The bits of a non-negative float sort like the float, and one bit is free for the outcome: columns are sorted
    as integers, which is much faster than argsort.
    """
    rows, codes = probability.shape
    positives = positive.sum(axis=0)
    if not positives.any():
        return np.full(codes, np.nan)
    keys = (np.ascontiguousarray(probability.T).view(np.uint32) + 1) << 1 | positive.T
    if not is_target.all():
        keys = np.where(is_target.T, keys, np.uint32(0))  # pairs that are not forecast rank last
    keys.sort(axis=1)
    scores, hit = (keys >> 1).ravel(), np.flatnonzero(keys & 1)
    opens = np.arange(keys.size, dtype=np.int32)  # equal scores of a code are one step
    same = np.flatnonzero(scores[1:] == scores[:-1]) + 1
    opens[same[same % rows != 0]] = 0
    first = np.maximum.accumulate(opens)[hit]
    code, rank = np.divmod(first, rows)
    higher = len(hit) - np.searchsorted(hit, first)  # hits from this step on, including later codes
    reached = higher - (len(hit) - np.cumsum(positives))[code]
    area = np.bincount(code, reached / (rows - rank), minlength=codes)
    return np.where(positives > 0, area / np.maximum(positives, 1), np.nan)


def _count_rows(table: ScoreTable, selected: Flags) -> Counts:
    """Return ``ScoreSums.rows`` for each column of ``selected``."""
    observed = selected & table.observed[:, None]
    rows = np.zeros((6, selected.shape[1]), dtype=np.int64)
    if len(table):
        new_day = np.flatnonzero(np.diff(table.at // _DAY_US, prepend=-1))
        rows[1] = np.logical_or.reduceat(observed, new_day, axis=0).sum(axis=0)
    rows[0] = observed.sum(axis=0)
    rows[2] = observed[table.revision_count > 0].sum(axis=0)
    rows[3] = selected[~table.observed].sum(axis=0)
    rows[4] = observed[table.status == "warming_up"].sum(axis=0)
    rows[5] = observed[table.status == "stale"].sum(axis=0)
    return rows


@dataclass(frozen=True)
class CalibrationBin:
    """Pairs of similar probability: mean probability, observed frequency, number of pairs."""

    predicted: float
    observed: float
    pairs: int


@dataclass(frozen=True)
class Scores:
    """Scores of one forecaster; None where not defined."""

    pairs: int
    positives: int
    predicted: int
    hits: int
    precision: float | None
    recall: float | None
    f1: float | None
    brier: float | None
    brier_skill: float | None
    average_precision: float | None
    calibration_error: float | None
    cold_average_precision: float | None
    cold_brier_skill: float | None
    notifications: int
    notifications_per_machine_day: float | None
    notification_precision: float | None
    onsets: int
    onsets_announced: float | None
    median_lead_minutes: float | None
    reliability: tuple[CalibrationBin, ...]


@dataclass(frozen=True)
class ScoreSummary:
    """Number of forecasts, and the scores of model and baselines on them."""

    forecasts: int
    days: int
    revision_count: int
    unobserved: int
    warming_up: int
    stale: int
    model: Scores
    persistence: Scores
    base_rate: Scores

    @property
    def lift_over_persistence(self) -> float | None:
        """Average precision of the model divided by that of persistence."""
        own, baseline = self.model.average_precision, self.persistence.average_precision
        return None if own is None or not baseline else _rounded(own / baseline)


def summarize(sums: ScoreSums) -> ScoreSummary:
    """Compute scores from sums."""
    days = int(sums.rows[1])
    model, persistence, base_rate = (_scores(sums.pairs[forecaster], days) for forecaster in ScoredForecaster)
    forecasts, days, revisions, unobserved, warming_up, stale = (int(count) for count in sums.rows)
    return ScoreSummary(forecasts, days, revisions, unobserved, warming_up, stale, model, persistence, base_rate)


def _scores(sums: Reals, days: int) -> Scores:
    pairs, positives, predicted, hits, squared, compared_squared, base_squared, area, ranked = sums[
        : _SumColumn.COLD_SQUARED
    ]
    cold_squared, cold_base, cold_area, cold_ranked = sums[_SumColumn.COLD_SQUARED : _SumColumn.BINS]
    count, probability, occurred = sums[_SumColumn.BINS : _NOTIFICATIONS].reshape(3, BINS)
    notified = sums[_NOTIFICATIONS:]
    distance = float(np.abs(probability - occurred).sum())
    return Scores(
        pairs=int(pairs),
        positives=int(positives),
        predicted=int(predicted),
        hits=int(hits),
        precision=_ratio(hits, predicted),
        recall=_ratio(hits, positives),
        f1=_ratio(2 * hits, predicted + positives),
        brier=_ratio(squared, pairs),
        brier_skill=_skill(compared_squared, base_squared),
        average_precision=_ratio(area, ranked),
        calibration_error=_ratio(distance, pairs),
        cold_average_precision=_ratio(cold_area, cold_ranked),
        cold_brier_skill=_skill(cold_squared, cold_base),
        notifications=int(notified[SENT]),
        notifications_per_machine_day=_ratio(notified[SENT], days),
        notification_precision=_ratio(notified[RIGHT], notified[SENT]),
        onsets=int(notified[ONSETS]),
        onsets_announced=_ratio(notified[ANNOUNCED], notified[ONSETS]),
        median_lead_minutes=median_lead_minutes(notified),
        reliability=tuple(
            CalibrationBin(_rounded(probability[i] / count[i]), _rounded(occurred[i] / count[i]), int(count[i]))
            for i in np.flatnonzero(count)
        ),
    )


def _ratio(part: float, whole: float) -> float | None:
    return _rounded(part / whole) if whole > 0 else None


def _skill(own: float, base: float) -> float | None:
    """Return the Brier skill; None where the base rate was never wrong or not available."""
    return _rounded(1 - own / base) if base > 0 else None


def _rounded(value: float) -> float:
    return round(float(value), 4)
