"""Learn arrow, gate: how far two models' scores on one exam may differ by the chance of which days it held.

Hourly windows share their horizons and the day's troubles, so days are what is drawn, and both models are
scored on the same draw. The draws are a Bayesian bootstrap: each day weighs as much as an exponential variate
says, never nought, so that a code seen on few days keeps its average precision in every draw.
"""

from math import inf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from service.learning.metrics import Scores
from service.learning.ocdm import Labels

Reals = NDArray[np.float64]
Places = NDArray[np.intp]


def day_weights(days: int, draws: int, rng: np.random.Generator) -> Reals:
    """Return days by draws; one more draw comes first, weighs all days equally and is the exam as it was."""
    return np.hstack([np.ones((days, 1)), rng.standard_exponential((days, draws))])


def average_precision(labels: Labels, scores: Scores, day: Places, weights: Reals) -> Reals:
    """Return codes by draws: ``metrics.average_precision`` with each window weighted by its day.

    ``day`` is each window's row of ``weights``.
    """
    from service.learning import average_precision_kernel as ranked  # noqa: PLC0415 - loads a compiler, and exams are judged by one process only

    result = np.full((labels.shape[1], weights.shape[1]), np.nan)
    for code in np.flatnonzero(labels.any(axis=0)):
        order = np.argsort(-scores[:, code], kind="stable")
        ends = np.append(np.diff(scores[order, code]) != 0, [True])
        result[code] = ranked.average_precision(labels[order, code], ends, day[order], weights)
    return result


def brier_skill(labels: Labels, probabilities: Scores, base_rate: Scores, day: Places, weights: Reals) -> Reals:
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
