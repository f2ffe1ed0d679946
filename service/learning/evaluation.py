"""Learn arrow, exam: a machine's held-out later windows, and how good one model's answers to them are."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecasting.network import Matrix
from forecasting.vocabulary import Columns
from service.learning.continual_update import Model
from service.learning.metrics import average_precision, brier, brier_skill, f1, macro
from service.learning.ocdm import Labels
from service.learning.samples import Samples
from service.learning.windows import WindowSet

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HoldoutSet:
    """Windows that no model learns from, by code, and how often each code came in the machine's windows before."""

    windows: WindowSet
    base_rate: Mapping[int, float]

    @classmethod
    def build(cls, before: Sequence[WindowSet], windows: WindowSet) -> "HoldoutSet":
        """Return the exam of the later windows; the earlier ones tell how often each code usually comes."""
        came: Counter[int] = Counter()
        for part in before:
            came.update(dict(zip(part.codes.tolist(), part.outcomes.sum(axis=0).tolist(), strict=True)))
        count = sum(map(len, before))
        return cls(windows, {code: came[code] / count for code in sorted(came) if came[code]})

    def labels(self, codes: tuple[int, ...]) -> Labels:
        """Return which of these codes came."""
        return self.windows.labels(Columns(codes))

    def base_rates(self, codes: tuple[int, ...]) -> Reals:
        """Return how often each of these codes came before."""
        return np.array([self.base_rate.get(code, 0.0) for code in codes])


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """What a model said in an exam, columns in the order of its targets, and how good that was."""

    targets: tuple[int, ...]
    probabilities: Matrix
    average_precision: float | None
    brier_skill: float | None
    macro_f1: float | None
    by_code: list[dict[str, Any]]

    def for_codes(self, codes: tuple[int, ...]) -> Matrix:
        """Return the probabilities of these codes, which must be among the targets."""
        place = {code: column for column, code in enumerate(self.targets)}
        return self.probabilities[:, [place[code] for code in codes]]


def evaluate(model: Model, exam: HoldoutSet, *, history: bool) -> EvaluationResult:
    """Let a model sit an exam."""
    targets = model.vocabulary.targets
    samples = Samples.from_windows(exam.windows, model.vocabulary, history=history)
    probabilities = model.probabilities(samples)
    support = np.asarray(samples.labels.any(axis=0))
    precision = average_precision(samples.labels, probabilities)
    scores = f1(samples.labels, probabilities >= model.thresholds)
    squares = brier(samples.labels, probabilities)
    rates = exam.base_rates(targets)
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
    )


def _number(value: float) -> float | None:
    """Return a figure as JSON can hold it; what is undefined is nothing, not a number."""
    return round(float(value), 6) if np.isfinite(value) else None
