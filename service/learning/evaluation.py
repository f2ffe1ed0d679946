"""Evaluate a model on a machine's holdout set."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecasting.forecaster import Forecaster as Model
from forecasting.network import Matrix
from forecasting.vocabulary import Columns
from forecasting.window import WindowSpec
from service.learning.continual_update import predict, predict_horizons
from service.learning.metrics import average_precision, brier, brier_skill, f1, macro, reliability
from service.learning.ocdm import Labels
from service.learning.windows import FAR, MAIN, NEAR, UNKNOWN, Samples, WindowSet

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HoldoutSet:
    """Windows that no model is trained on, and the base rate of each code in the machine's earlier windows."""

    windows: WindowSet
    base_rate: Mapping[int, float]

    @classmethod
    def build(cls, before: Sequence[WindowSet], windows: WindowSet) -> "HoldoutSet":
        """Return the holdout set of ``windows``; the windows ``before`` give the base rates."""
        positives: Counter[int] = Counter()
        for part in before:
            positives.update(dict(zip(part.codes.tolist(), part.outcomes.sum(axis=0).tolist(), strict=True)))
        count = sum(map(len, before))
        return cls(windows, {code: positives[code] / count for code in sorted(positives) if positives[code]})

    def labels(self, codes: tuple[int, ...]) -> Labels:
        """Return the labels of these codes."""
        return self.windows.labels(Columns(codes))

    def base_rates(self, codes: tuple[int, ...]) -> Reals:
        """Return the base rates of these codes."""
        return np.array([self.base_rate.get(code, 0.0) for code in codes])


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """A model's probabilities on a holdout set, columns in the order of its targets, and its scores.

    ``by_horizon`` has the scores of each of three horizons; a version's report has their means.
    """

    targets: tuple[int, ...]
    probabilities: Matrix
    average_precision: float | None
    brier_skill: float | None
    macro_f1: float | None
    by_code: list[dict[str, Any]]
    by_horizon: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def for_codes(self, codes: tuple[int, ...]) -> Matrix:
        """Return the probabilities of these codes, which must be among the targets."""
        columns = {code: column for column, code in enumerate(self.targets)}
        return self.probabilities[:, [columns[code] for code in codes]]


def evaluate(model: Model, holdout: HoldoutSet) -> EvaluationResult:
    """Return a model's probabilities and scores on a holdout set."""
    targets = model.vocabulary.targets
    samples = Samples.from_windows(holdout.windows, model.vocabulary, history=model.history is not None)
    forecasts = predict_horizons(model, samples)
    probabilities = predict(model, samples) if forecasts is None else forecasts[..., 1]
    support = np.asarray(samples.labels.any(axis=0))
    precision = average_precision(samples.labels, probabilities)
    scores = f1(samples.labels, probabilities >= model.thresholds)
    squares = brier(samples.labels, probabilities)
    rates = holdout.base_rates(targets)
    return EvaluationResult(
        targets=targets,
        probabilities=probabilities,
        average_precision=_number(macro(precision, support)),
        brier_skill=_number(brier_skill(samples.labels, probabilities, rates)),
        macro_f1=_number(macro(scores, support)),
        by_code=[
            {
                "code": code,
                "positives": int(samples.labels[:, column].sum()),
                "base_rate": _number(rates[column]),
                "average_precision": _number(precision[column]),
                "f1": _number(scores[column]),
                "brier": _number(squares[column]),
            }
            for column, code in enumerate(targets)
        ],
        by_horizon={} if forecasts is None else _scores_by_horizon(model.spec, forecasts, samples.within),
    )


def _scores_by_horizon(
    spec: WindowSpec, forecasts: Matrix, within: NDArray[np.uint8] | None
) -> dict[str, dict[str, float | None]]:
    """Score each horizon on the windows whose far horizon is known."""
    if within is None:
        return {}
    known = ~(within == UNKNOWN).any(axis=1)
    scores: dict[str, dict[str, float | None]] = {}
    for place, (name, least) in enumerate(zip(spec.horizon_names, (NEAR, MAIN, FAR), strict=True)):
        labels, forecast = within[known] >= least, forecasts[known, :, place]
        precision = average_precision(labels, forecast)
        scores[name] = {
            "average_precision": _number(macro(precision, labels.any(axis=0))),
            "brier": _number(float(np.mean(brier(labels, forecast)))) if known.any() else None,
            "calibration_error": _number(reliability(labels, forecast).expected_calibration_error),
        }
    return scores


def _number(value: float) -> float | None:
    """Return a score as JSON can hold it: null where it is undefined."""
    return round(float(value), 6) if np.isfinite(value) else None
