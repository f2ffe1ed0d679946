"""How good the forecasts really served were: outcomes to figures, beside persistence and the base rate.

Everything is counted once for each machine (and version, if asked for) in columns of target codes; figures of a
machine, a code or the fleet are sums of such counts. Precision, recall, F1, Brier score and calibration are over
all pairs of forecast and code; average precision, which only means something within one code of one machine, is
the mean over those in which the code came.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Reals = NDArray[np.float64]
BINS: Final = 10
_DAY_US: Final = 86_400_000_000


class Forecaster(IntEnum):
    """Who is scored on the same moments."""

    MODEL = 0
    PERSISTENCE = 1
    BASE_RATE = 2


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Outcomes of one machine side by side: a row for each forecast, a column for each target code.

    ``asked`` says which codes were among a row's targets. ``usual`` says where the base rate alone passes the
    threshold; the base rate is NaN where the machine had no past.
    """

    codes: Counts
    version: Counts
    at: Counts
    revised: Counts
    status: NDArray[np.str_]
    heard: Flags
    asked: Flags
    probability: NDArray[np.float32]
    base_rate: NDArray[np.float32]
    announced: Flags
    came: Flags
    persisted: Flags
    usual: Flags

    def __len__(self) -> int:
        return len(self.at)


_BY_CODE: Final = ("asked", "probability", "base_rate", "announced", "came", "persisted", "usual")


def concat(sheets: Sequence[ScoreTable]) -> ScoreTable:
    """Return the sheets of several versions as one, in time order, over every code that any of them forecast."""
    if len(sheets) == 1:
        return sheets[0]
    codes = np.unique(np.concatenate([sheet.codes for sheet in sheets]))
    order = np.argsort(np.concatenate([sheet.at for sheet in sheets]), kind="stable")
    parts = {
        field.name: np.concatenate([_placed(sheet, field.name, codes) for sheet in sheets])[order]
        for field in fields(ScoreTable)
        if field.name != "codes"
    }
    return ScoreTable(codes=codes, **parts)


def _placed(sheet: ScoreTable, name: str, codes: Counts) -> NDArray[np.generic]:
    values: NDArray[np.generic] = getattr(sheet, name)
    if name not in _BY_CODE:
        return values
    placed = np.zeros((len(values), len(codes)), dtype=values.dtype)
    placed[:, np.searchsorted(codes, sheet.codes)] = values
    return placed


def by_day(sheet: ScoreTable) -> Iterator[tuple[int, ScoreTable]]:
    """Yield a sheet's rows day by day, each with when its day began; days are UTC's, rows are in time order."""
    days = sheet.at // _DAY_US
    starts = np.flatnonzero(np.diff(days, prepend=-1))
    for first, last in zip(starts, [*starts[1:], len(sheet)], strict=True):
        rows = {
            field.name: getattr(sheet, field.name)[first:last]
            for field in fields(ScoreTable)
            if field.name != "codes"
        }
        yield int(days[first]) * _DAY_US, ScoreTable(codes=sheet.codes, **rows)


class _SumColumn(IntEnum):
    """What is summed over pairs of forecast and code, for each rival; the bins follow."""

    PAIRS = 0
    POSITIVES = 1
    ANNOUNCED = 2
    HITS = 3
    SQUARED = 4
    KNOWN_SQUARED = 5  # where there is a base rate to compare with …
    KNOWN_BASE_SQUARED = 6  # … and how that fared there
    AVERAGE_PRECISION = 7
    RANKED = 8
    BINS = 9


_WIDTH: Final = _SumColumn.BINS + 3 * BINS  # of each bin: pairs, probability said, came


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Counts that can be added; arrays end in an axis of codes until they are summed over it.

    ``rows`` counts forecasts: scored, days they cover, revised, unheard, and those not ``ok``: warming up, stale.
    """

    pairs: Reals
    rows: Counts

    def __add__(self, other: "ScoreSums") -> "ScoreSums":
        return ScoreSums(self.pairs + other.pairs, self.rows + other.rows)


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """A sheet counted: as a whole, and each of its codes alone."""

    codes: Counts
    whole: ScoreSums
    by_code: ScoreSums

    def of(self, column: int) -> ScoreSums:
        """Return the tally of one code."""
        return ScoreSums(self.by_code.pairs[..., column], self.by_code.rows[..., column])


def count(sheet: ScoreTable) -> ScoreCounts:
    """Count a sheet; rows whose horizon was not heard are counted and otherwise left out."""
    heard = sheet.heard
    asked, came, base = sheet.asked[heard], sheet.came[heard], sheet.base_rate[heard]
    known, usual, persisted = asked & ~np.isnan(base), np.nan_to_num(base), sheet.persisted[heard]
    pairs = np.zeros((len(Forecaster), _WIDTH, len(sheet.codes)))
    _sum_decisions(pairs[Forecaster.MODEL], sheet.announced[heard], asked, came)
    _sum_decisions(pairs[Forecaster.PERSISTENCE], persisted, asked, came)
    _sum_decisions(pairs[Forecaster.BASE_RATE], sheet.usual[heard], known, came)
    _sum_probabilities(pairs[Forecaster.MODEL], sheet.probability[heard], asked, came, known)
    _sum_certainties(pairs[Forecaster.PERSISTENCE], persisted != came, known)
    _sum_probabilities(pairs[Forecaster.BASE_RATE], usual, known, came, known)
    pairs[:, _SumColumn.KNOWN_BASE_SQUARED] = pairs[Forecaster.BASE_RATE, _SumColumn.SQUARED]
    everything = np.ones((len(sheet), 1), dtype=np.bool_)
    return ScoreCounts(
        sheet.codes,
        ScoreSums(pairs.sum(axis=-1), _rows(sheet, everything)[:, 0]),
        ScoreSums(pairs, _rows(sheet, sheet.asked)),
    )


def _sum_decisions(sums: Reals, announced: Flags, asked: Flags, came: Flags) -> None:
    positive = came & asked
    sums[_SumColumn.PAIRS] = asked.sum(axis=0)
    sums[_SumColumn.POSITIVES] = positive.sum(axis=0)
    sums[_SumColumn.ANNOUNCED] = (announced & asked).sum(axis=0)
    sums[_SumColumn.HITS] = (announced & positive).sum(axis=0)


def _sum_probabilities(sums: Reals, said: NDArray[np.float32], asked: Flags, came: Flags, known: Flags) -> None:
    codes = asked.shape[1]
    squared, positive = np.square(said - came), came & asked
    sums[_SumColumn.SQUARED] = np.sum(squared * asked, axis=0, dtype=np.float64)
    sums[_SumColumn.KNOWN_SQUARED] = np.sum(squared * known, axis=0, dtype=np.float64)
    ranked = _average_precision(said, positive, asked)
    sums[_SumColumn.AVERAGE_PRECISION] = np.nan_to_num(ranked)
    sums[_SumColumn.RANKED] = ~np.isnan(ranked)
    place = np.minimum((said * BINS).astype(np.int32), BINS - 1) * np.int32(codes)
    place += np.arange(codes, dtype=np.int32)
    place[~asked] = BINS * codes  # what was not asked about goes past the last bin
    for part, weights in enumerate((None, said.ravel(), positive.ravel())):
        binned = np.bincount(place.ravel(), weights, minlength=BINS * codes + 1)[:-1]
        sums[_SumColumn.BINS + part * BINS : _SumColumn.BINS + (part + 1) * BINS] = binned.reshape(BINS, codes)


def _sum_certainties(sums: Reals, wrong: Flags, known: Flags) -> None:
    """Add to sums of decisions what follows for who says only nought or one."""
    pairs, positives, announced, hits = sums[: _SumColumn.SQUARED]
    sums[_SumColumn.SQUARED] = announced + positives - 2 * hits
    sums[_SumColumn.KNOWN_SQUARED] = (wrong & known).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.nan_to_num(hits * hits / announced)  # two steps: what was announced, then all the rest
        ranked = (found + (positives - hits) * positives / pairs) / positives
    sums[_SumColumn.AVERAGE_PRECISION] = np.nan_to_num(ranked)
    sums[_SumColumn.RANKED] = positives > 0
    no, yes = _SumColumn.BINS, _SumColumn.BINS + BINS - 1
    sums[no], sums[yes] = pairs - announced, announced
    sums[yes + BINS] = announced
    sums[no + 2 * BINS], sums[yes + 2 * BINS] = positives - hits, hits


def _average_precision(said: NDArray[np.float32], positive: Flags, asked: Flags) -> Reals:
    """Return each code's average precision as ``metrics`` defines it, for many codes and rows at once.

    Probabilities are not negative, so their bits are in their order, and one bit is free for the outcome: whole
    columns are sorted as integers, a good deal faster than asking for the order and following it.
    """
    rows, codes = said.shape
    positives = positive.sum(axis=0)
    if not positives.any():
        return np.full(codes, np.nan)
    keys = (np.ascontiguousarray(said.T).view(np.uint32) + 1) << 1 | positive.T
    if not asked.all():
        keys = np.where(asked.T, keys, np.uint32(0))  # what was not asked about ranks last
    keys.sort(axis=1)
    scores, hit = (keys >> 1).ravel(), np.flatnonzero(keys & 1)
    opens = np.arange(keys.size, dtype=np.int32)  # equal scores of one code are one step, counted from its first
    same = np.flatnonzero(scores[1:] == scores[:-1]) + 1
    opens[same[same % rows != 0]] = 0
    first = np.maximum.accumulate(opens)[hit]
    code, place = np.divmod(first, rows)
    higher = len(hit) - np.searchsorted(hit, first)  # hits from this step on, later codes included
    reached = higher - (len(hit) - np.cumsum(positives))[code]
    area = np.bincount(code, reached / (rows - place), minlength=codes)
    return np.where(positives > 0, area / np.maximum(positives, 1), np.nan)


def _rows(sheet: ScoreTable, asked: Flags) -> Counts:
    """Return what ``Tally.rows`` counts, for each column of ``asked``."""
    heard = asked & sheet.heard[:, None]
    rows = np.zeros((6, asked.shape[1]), dtype=np.int64)
    if len(sheet):
        new_day = np.flatnonzero(np.diff(sheet.at // _DAY_US, prepend=-1))
        rows[1] = np.logical_or.reduceat(heard, new_day, axis=0).sum(axis=0)
    rows[0] = heard.sum(axis=0)
    rows[2] = heard[sheet.revised > 0].sum(axis=0)
    rows[3] = asked[~sheet.heard].sum(axis=0)
    rows[4] = heard[sheet.status == "warming_up"].sum(axis=0)
    rows[5] = heard[sheet.status == "stale"].sum(axis=0)
    return rows


@dataclass(frozen=True)
class CalibrationBin:
    """Forecasts that said about the same: how likely on average, how often it came, how many there are."""

    predicted: float
    observed: float
    pairs: int


@dataclass(frozen=True)
class Scores:
    """One rival's figures; None where they are not defined."""

    pairs: int
    positives: int
    announced: int
    hits: int
    precision: float | None
    recall: float | None
    f1: float | None
    brier: float | None
    brier_skill: float | None
    average_precision: float | None
    calibration_error: float | None
    reliability: tuple[CalibrationBin, ...]


@dataclass(frozen=True)
class ScoreSummary:
    """A line of the scoreboard: how many forecasts it is about, and everyone's figures on them."""

    forecasts: int
    days: int
    revised: int
    unheard: int
    warming_up: int
    stale: int
    model: Scores
    persistence: Scores
    base_rate: Scores

    @property
    def lift_over_persistence(self) -> float | None:
        """How many times persistence's average precision the model's is."""
        own, rival = self.model.average_precision, self.persistence.average_precision
        return None if own is None or not rival else _rounded(own / rival)


def summarize(tally: ScoreSums) -> ScoreSummary:
    """Turn counts into figures."""
    forecasts, days, revised, unheard, warming_up, stale = (int(count) for count in tally.rows)
    model, persistence, base_rate = (_scores(tally.pairs[rival]) for rival in Forecaster)
    return ScoreSummary(forecasts, days, revised, unheard, warming_up, stale, model, persistence, base_rate)


def _scores(sums: Reals) -> Scores:
    pairs, positives, announced, hits, squared, known_squared, base_squared, area, ranked = sums[: _SumColumn.BINS]
    count, said, came = sums[_SumColumn.BINS :].reshape(3, BINS)
    filled = np.flatnonzero(count)
    distance = float(np.abs(said - came).sum())
    return Scores(
        pairs=int(pairs),
        positives=int(positives),
        announced=int(announced),
        hits=int(hits),
        precision=_ratio(hits, announced),
        recall=_ratio(hits, positives),
        f1=_ratio(2 * hits, announced + positives),
        brier=_ratio(squared, pairs),
        brier_skill=_skill(known_squared, base_squared),
        average_precision=_ratio(area, ranked),
        calibration_error=_ratio(distance, pairs),
        reliability=tuple(
            CalibrationBin(_rounded(said[i] / count[i]), _rounded(came[i] / count[i]), int(count[i]))
            for i in filled
        ),
    )


def _ratio(part: float, whole: float) -> float | None:
    return _rounded(part / whole) if whole > 0 else None


def _skill(own: float, base: float) -> float | None:
    """Return how much closer than the base rate; None where that was never wrong, or never there."""
    return _rounded(1 - own / base) if base > 0 else None


def _rounded(value: float) -> float:
    """Return a figure as people read it; more digits would be noise."""
    return round(float(value), 4)
