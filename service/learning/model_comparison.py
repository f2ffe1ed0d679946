"""Learn arrow, gate: one score of two models on one exam, and how it moves when other days are drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.learning import resampling
from service.learning.metrics import Scores
from service.learning.ocdm import Labels

Reals = NDArray[np.float64]

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
    resampled_losses: Reals | None = None  # of the loss, one for each draw, around nought
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
            else resampling.student_t_quantile(error, self.dof) * _spread(self.resampled_losses)
        )


class PairedBootstrap:
    """Contrasts on common draws: a day is drawn for the whole fleet, as machines may share its troubles."""

    def __init__(
        self, pairs: Iterable[PairedPredictions], *, fewest_days: int, draws: int, rng: np.random.Generator
    ) -> None:
        self._days = np.unique(np.concatenate([pair.day for pair in pairs]))
        self._weights = resampling.day_weights(len(self._days), draws, rng)
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
        correction, losses = resampling.variance_correction(_support(metric, pair)), reference[1:] - candidate[1:]
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
        return resampling.brier_skill(pair.labels, answers, pair.base_rate, day, weights)
    came = pair.labels.any(axis=0)
    if not came.any():
        return np.full(weights.shape[1], nan)
    return np.asarray(resampling.average_precision(pair.labels, answers, day, weights)[came].mean(axis=0))


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
