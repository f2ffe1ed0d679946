"""Compare two models on one holdout set, with a paired day-block bootstrap.

Hourly windows share their horizons and the faults of the day. So days are resampled, and both models are scored on
the same resample. It is a Bayesian bootstrap: each day has an exponential weight, never zero, so that a code
seen on few days keeps its average precision in every resample.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, nan, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.learning.metrics import Scores
from service.learning.ocdm import Labels

Reals = NDArray[np.float64]
Places = NDArray[np.intp]


def day_weights(days: int, draws: int, rng: np.random.Generator) -> Reals:
    """Return days by draws; one more draw comes first, weighs all days equally and is the exam as it was."""
    return np.hstack([np.ones((days, 1)), rng.standard_exponential((days, draws))])


def resampled_average_precision(labels: Labels, scores: Scores, day: Places, weights: Reals) -> Reals:
    """Return codes by draws: ``metrics.average_precision`` with each window weighted by its day.

    ``day`` is each window's row of ``weights``.
    """
    from service.learning.numba_kernels import weighted_average_precision  # noqa: PLC0415 - loads a compiler, and exams are judged by one process only

    result = np.full((labels.shape[1], weights.shape[1]), np.nan)
    for code in np.flatnonzero(labels.any(axis=0)):
        order = np.argsort(-scores[:, code], kind="stable")
        ends = np.append(np.diff(scores[order, code]) != 0, [True])
        result[code] = weighted_average_precision(labels[order, code], ends, day[order], weights)
    return result


def resampled_brier_skill(
    labels: Labels, probabilities: Scores, base_rate: Scores, day: Places, weights: Reals
) -> Reals:
    """Return ``metrics.brier_skill`` of each draw; NaN where the base rate is never wrong."""
    own = _by_day((probabilities.astype(np.float64) - labels) ** 2, day, len(weights)) @ weights
    reference = _by_day((base_rate.astype(np.float64) - labels) ** 2, day, len(weights)) @ weights
    return 1 - np.divide(own, reference, out=np.full_like(own, np.nan), where=reference > 0)


def variance_correction(support: NDArray[np.integer]) -> float:
    """Return by how much the draws' spread is too small, for codes that came on ``support`` days each.

    The mean of k days varies by σ²/k, its draws by σ²/k · (k-1)/(k+1) on average: by too little for few days
    and not at all for one, whose own chance no resampling can show. Infinite if no code came on two days.
    """
    days = support[support > 0].astype(np.float64)
    shown = np.sum((days - 1) / (days * (days + 1)))
    return sqrt(np.sum(1 / days) / shown) if shown > 0 else inf


def student_t_quantile(error: float, freedom: float) -> float:
    """Return how many standard errors Student's t exceeds with probability ``error`` (Cornish and Fisher)."""
    z = NormalDist().inv_cdf(1 - error)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _by_day(values: Reals, day: Places, days: int) -> Reals:
    return np.asarray(np.bincount(day, weights=values.sum(axis=1), minlength=days), dtype=np.float64)


AVERAGE_PRECISION: Final = "average_precision"
BRIER_SKILL: Final = "brier_skill"
METRICS: Final = (AVERAGE_PRECISION, BRIER_SKILL)
DAY: Final = 86_400_000_000  # microseconds


@dataclass(frozen=True, eq=False)
class PairedPredictions:
    """One machine's exam, answered by two models: windows by codes, the same codes for both.

    ``at`` is in microseconds since 1970; the windows of one UTC day are one block. ``base_rate`` is each code's
    share of the windows the machine was learned from.
    """

    at: NDArray[np.int64]
    labels: Labels
    base_rate: Scores
    candidate: Scores
    reference: Scores

    def __post_init__(self) -> None:
        windows, codes = self.labels.shape
        if self.at.shape != (windows,) or self.base_rate.shape != (codes,):
            raise ValueError("An exam needs a moment for each window and a base rate for each code.")
        if self.candidate.shape != self.labels.shape or self.reference.shape != self.labels.shape:
            raise ValueError("Both models must answer every window and every code of the exam.")

    @property
    def day(self) -> NDArray[np.int64]:
        """The UTC day of each window."""
        return self.at // DAY


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreDifference:
    """The scores of candidate and reference; ``doubt`` says why the exam cannot tell them apart, if it cannot."""

    metric: str
    candidate: float
    reference: float
    days: int
    dof: float = nan
    resampled_losses: Reals | None = None  # of the loss, one for each draw, around zero
    inconclusive_reason: str | None = None
    false_alarms: tuple[float, float] | None = None  # of both in an exam without an alarm, see ``_false_alarms``

    @property
    def loss(self) -> float:
        """By how much the candidate is worse."""
        return self.reference - self.candidate

    def margin(self, error: float) -> float:
        """Return how much of a loss chance explains, except with probability ``error``; NaN in doubt."""
        return (
            nan
            if self.resampled_losses is None
            else student_t_quantile(error, self.dof) * _spread(self.resampled_losses)
        )


class PairedBootstrap:
    """Contrasts on common draws: a day is drawn for the whole fleet, as machines may share its troubles."""

    def __init__(
        self, pairs: Iterable[PairedPredictions], *, fewest_days: int, draws: int, rng: np.random.Generator
    ) -> None:
        self._days = np.unique(np.concatenate([pair.day for pair in pairs]))
        self._weights = day_weights(len(self._days), draws, rng)
        self._fewest_days = max(fewest_days, 2)
        # By identity, as a model sits in several pairs; the pair is kept so that no identity is given twice.
        self._known: dict[tuple[int, ...], tuple[PairedPredictions, Reals]] = {}

    def compare(self, metric: str, pair: PairedPredictions) -> ScoreDifference:
        """Compare both models on the exam as it was and on every draw of its days."""
        days = len(np.unique(pair.day))
        candidate, reference = (self._scores(metric, pair, each) for each in (pair.candidate, pair.reference))
        result = partial(
            ScoreDifference, metric=metric, candidate=float(candidate[0]), reference=float(reference[0]), days=days
        )
        if not np.all(np.isfinite(pair.reference)):
            return result(inconclusive_reason="the version to compare with answers what is not a probability")
        if days < self._fewest_days:
            return result(
                inconclusive_reason=f"its exam has {days} days, and fewer than {self._fewest_days} cannot tell"
            )
        if not pair.labels.any():
            reason = f"no alarm came in the {days} days of its exam"
            return result(inconclusive_reason=reason, false_alarms=_false_alarms(pair))
        correction, losses = variance_correction(_support(metric, pair)), reference[1:] - candidate[1:]
        if correction == inf:
            return result(inconclusive_reason=f"no alarm came on two of the {days} days of its exam")
        if not np.all(np.isfinite(losses)):
            return result(
                inconclusive_reason=f"its base rate was never wrong in {days} days: there is no skill to measure"
            )
        dof = 1 / (1 / (days - 1) + 1 / (len(losses) - 1))  # of the days, and of the draws
        return result(dof=dof, resampled_losses=(losses - losses.mean()) * correction)

    def mean(self, contrasts: Sequence[ScoreDifference]) -> ScoreDifference:
        """Return the mean over machines of contrasts that are not in doubt."""
        moves = [contrast.resampled_losses for contrast in contrasts if contrast.resampled_losses is not None]
        variances = np.array([_spread(each) ** 2 for each in moves])
        freedoms = np.array([contrast.dof for contrast in contrasts])
        # Welch's for machines whose days have nothing in common, and never more than there are days to draw.
        welch = np.sum(variances) ** 2 / np.sum(variances**2 / freedoms) if variances.any() else inf
        return ScoreDifference(
            metric=contrasts[0].metric,
            candidate=float(np.mean([contrast.candidate for contrast in contrasts])),
            reference=float(np.mean([contrast.reference for contrast in contrasts])),
            days=len(self._days),
            dof=float(min(welch, len(self._days) - 1)),
            resampled_losses=np.mean(moves, axis=0),
        )

    def _scores(self, metric: str, pair: PairedPredictions, answers: Scores) -> Reals:
        key = (METRICS.index(metric), id(pair.labels), id(pair.base_rate), id(answers))
        if key not in self._known:
            days, day = np.unique(pair.day, return_inverse=True)
            weights = self._weights[np.searchsorted(self._days, days)]
            self._known[key] = pair, _draws(metric, pair, answers, day, weights)
        return self._known[key][1]


def _false_alarms(pair: PairedPredictions) -> tuple[float, float] | None:
    """Return both models' squared error, where nothing came, on the code on which the candidate is most worse."""
    if not pair.labels.size:
        return None
    candidate, reference = (np.mean(np.square(each), axis=0) for each in (pair.candidate, pair.reference))
    worst = int(np.argmax(candidate - reference))
    return float(candidate[worst]), float(reference[worst])


def _draws(metric: str, pair: PairedPredictions, answers: Scores, day: NDArray[np.intp], weights: Reals) -> Reals:
    """Return the exam's score, as it was and then for every draw."""
    if metric == BRIER_SKILL:
        return resampled_brier_skill(pair.labels, answers, pair.base_rate, day, weights)
    came = pair.labels.any(axis=0)
    if not came.any():
        return np.full(weights.shape[1], nan)
    return np.asarray(resampled_average_precision(pair.labels, answers, day, weights)[came].mean(axis=0))


def _support(metric: str, pair: PairedPredictions) -> NDArray[np.intp]:
    """Return on how many days each of the averaged scores rests: those a code came on, or simply all."""
    days, day = np.unique(pair.day, return_inverse=True)
    if metric == BRIER_SKILL:
        return np.array([len(days)])
    came = np.zeros((len(days), pair.labels.shape[1]), dtype=np.bool_)
    np.logical_or.at(came, day, pair.labels)
    return np.asarray(came.sum(axis=0))


def _spread(moves: Reals) -> float:
    return float(np.sqrt(np.sum(moves**2) / max(len(moves) - 1, 1)))
