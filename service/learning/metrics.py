"""Metrics of forecasts and of forgetting.

In the paper's symbols: s_ij is the macro F1 on the test set of task j after learning task i, S_T their mean
over tasks after the last, F_T the mean relative loss since each task's best.

A label without a positive in a test set cannot be found, only wrongly announced. Its F1 is zero here, and
``macro`` either counts that zero or leaves the label out; it never counts as one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.learning.ocdm import Labels

Reals = NDArray[np.float64]
Scores = NDArray[np.floating]


def f1(labels: Labels, announced: Labels) -> Reals:
    """Return each label's F1, zero where there is neither a positive nor an announcement."""
    hits = np.sum(labels & announced, axis=0)
    return np.asarray(2 * hits / np.maximum(labels.sum(axis=0) + announced.sum(axis=0), 1))


def average_precision(labels: Labels, scores: Scores) -> Reals:
    """Return each label's area under precision over recall, in steps; NaN for a label without a positive.

    Equal scores are one step, so a forecaster that cannot rank gains nothing from the order of windows.
    """
    return np.array([_average_precision(labels[:, i], scores[:, i]) for i in range(labels.shape[1])])


def _average_precision(labels: NDArray[np.bool_], scores: Scores) -> float:
    if not labels.any():
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    step_ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    hits = np.cumsum(labels[order])[step_ends]
    precision = hits / (step_ends + 1)
    return float(np.sum(np.diff(hits, prepend=0) * precision) / hits[-1])


def brier(labels: Labels, probabilities: Scores) -> Reals:
    """Return each label's mean squared distance of probability and outcome."""
    return np.asarray(np.mean((probabilities.astype(np.float64) - labels) ** 2, axis=0))


def brier_skill(labels: Labels, probabilities: Scores, base_rate: Scores) -> float:
    """Return how much closer than a constant base rate the probabilities are: 1 is perfect, 0 no better.

    Over all labels together, those that never came included: calling them likely is an error too.
    """
    reference = brier(labels, np.broadcast_to(base_rate, labels.shape)).sum()
    own = brier(labels, probabilities).sum()
    if reference == 0:
        return 0.0 if own == 0 else float("-inf")
    return float(1 - own / reference)


def macro(values: Scores, support: NDArray[np.bool_], *, among: NDArray[np.bool_] | None = None) -> float:
    """Return the mean of the labels' values over those with support, NaN if there are none.

    Pass a support of all ones to count labels without a positive as they are, which for F1 is zero.
    ``among`` restricts the mean to a group of labels.
    """
    chosen = support if among is None else support & among
    return float(np.mean(values[chosen])) if chosen.any() else float("nan")


@dataclass(frozen=True, eq=False)
class Reliability:
    """Forecasts in bins of equal width: how likely they said, how often it came, how many there are."""

    forecast: Reals
    observed: Reals
    count: NDArray[np.int64]

    @property
    def expected_calibration_error(self) -> float:
        """The distance between said and seen, weighted by how often it was said."""
        filled = self.count > 0
        distance = np.abs(self.forecast[filled] - self.observed[filled])
        return float(np.sum(distance * self.count[filled]) / max(int(self.count.sum()), 1))


def reliability(labels: Labels, probabilities: Scores, *, bins: int = 10) -> Reliability:
    """Return the reliability curve of all labels together; an empty bin is NaN."""
    said, came = probabilities.astype(np.float64).ravel(), labels.ravel()
    place = np.clip((said * bins).astype(np.intp), 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(
            forecast=np.bincount(place, weights=said, minlength=bins) / count,
            observed=np.bincount(place, weights=came, minlength=bins) / count,
            count=count,
        )


def average_score(matrix: Reals) -> float:
    """Return S_T of an update by task matrix: the mean of its last row, tasks without a score left out."""
    last = matrix[-1]
    return float(np.mean(last[~np.isnan(last)])) if np.any(~np.isnan(last)) else float("nan")


def forgetting(matrix: Reals) -> float:
    """Return F_T of an update by task matrix, over all tasks but the last; NaN with a single task.

    Of a task whose best score was zero nothing can be forgotten, so it counts as zero.
    """
    losses = []
    for task in range(matrix.shape[1] - 1):
        earlier, now = matrix[:-1, task], matrix[-1, task]
        if np.isnan(now) or np.all(np.isnan(earlier)):
            continue
        best = float(np.nanmax(earlier))
        losses.append((best - now) / best if best > 0 else 0.0)
    return float(np.mean(losses)) if losses else float("nan")
