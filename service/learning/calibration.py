"""Calibrate logits to probabilities, and choose a threshold for each code.

Focal loss and a balanced memory both bend probabilities. Each code's logits are therefore passed through
its own logistic curve (Platt scaling), fitted on windows the model did not learn from, and drawn towards the
curve of all codes together, because a rare code has few positives of its own.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.calibration import Calibration
from forecasting.network import Matrix
from service.learning.ocdm import Labels

Reals = NDArray[np.float64]

# Hourly windows whose horizons last eight hours share seven of them: one says an eighth of what it would alone.
OVERLAP: Final = 8.0
SHRINKAGE: Final = 20.0  # how many lone windows' worth of evidence hold a code's curve to that of all codes,
TRUST: Final = 5.0  # and that one to what the model says itself
ONE_CURVE: Final = 1e9  # as ``shrinkage``, leaves no code a curve of its own
_FLATTEST: Final = 0.05  # a curve may not turn ranks around
_GRID: Final = np.linspace(0.02, 0.98, 97)  # below one in fifty nobody would expect anything


def fit(
    logits: Matrix, labels: Labels, *, weights: Reals | None = None, shrinkage: float = SHRINKAGE
) -> Calibration:
    """Fit one curve a code; without windows, or with one kind of outcome only, the model is left as it is."""
    count, targets = logits.shape
    if count == 0 or labels.all() or not labels.any():
        return Calibration.identity(targets)
    x, y = logits.astype(np.float64), labels.astype(np.float64)
    importance = (np.ones_like(x) if weights is None else np.broadcast_to(weights, x.shape)) / OVERLAP
    start = np.array([[1.0, 0.0]])
    shared = _logistic(x.reshape(-1, 1), y.reshape(-1, 1), importance.reshape(-1, 1), start, TRUST)
    own = _logistic(x, y, importance, np.repeat(shared, targets, axis=0), shrinkage)
    return Calibration(own[:, 0].astype(np.float32), own[:, 1].astype(np.float32))


def _logistic(x: Reals, y: Reals, importance: Reals, prior: Reals, shrinkage: float) -> Reals:
    """Return columns by (scale, shift) by damped Newton steps on the penalised log loss."""
    curve = prior.copy()
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x * curve[:, 0] + curve[:, 1], -50, 50)))
        error, spread = importance * (p - y), importance * p * (1 - p)
        slope = np.stack([np.sum(error * x, axis=0), np.sum(error, axis=0)], axis=1)
        slope += shrinkage * (curve - prior)
        mixed = np.sum(spread * x, axis=0)
        bend = np.stack([np.sum(spread * x * x, axis=0), mixed, mixed, np.sum(spread, axis=0)], axis=1)
        bend = bend.reshape(-1, 2, 2) + (shrinkage + 1e-9) * np.eye(2)
        step = np.clip(np.linalg.solve(bend, slope[:, :, None])[:, :, 0], -1, 1)
        curve = curve - step
        curve[:, 0] = np.maximum(curve[:, 0], _FLATTEST)
        if np.max(np.abs(step)) < 1e-9:  # noqa: PLR2004
            break
    return curve


def thresholds(probabilities: Sequence[Matrix], outcomes: Sequence[NDArray[np.floating] | Labels]) -> Matrix:
    """Return for each code the probability from which on to announce it: best mean F1 over machines.

    One entry of each sequence is a machine. ``outcomes`` are what came, or, where few windows leave that to
    chance, what is expected to come: calibrated probabilities. Machines on which a code never came say
    nothing about its threshold; a code that never came anywhere gets the mean of the others.
    """
    curves = np.stack([_f1_curve(p, o) for p, o in zip(probabilities, outcomes, strict=True)])
    came = ~np.isnan(curves[:, 0, :])
    chosen = _GRID[np.argmax(np.nansum(curves, axis=0), axis=0)]
    never = ~came.any(axis=0)
    chosen[never] = chosen[~never].mean() if np.any(~never) else 0.5
    return np.asarray(chosen, dtype=np.float32)


def _f1_curve(probabilities: Matrix, outcomes: NDArray[np.floating] | Labels) -> Reals:
    """Return grid by codes: F1 if announced from each threshold on; NaN where a code never came."""
    curve = np.full((len(_GRID), probabilities.shape[1]), np.nan)
    for code in range(probabilities.shape[1]):
        total = float(outcomes[:, code].sum())
        if total == 0:
            continue
        order = np.argsort(probabilities[:, code])
        hits = np.concatenate([[0.0], np.cumsum(outcomes[order, code][::-1], dtype=np.float64)])
        announced = len(order) - np.searchsorted(probabilities[order, code], _GRID, side="left")
        curve[:, code] = 2 * hits[announced] / (announced + total)
    return curve
