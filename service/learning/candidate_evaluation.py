"""Evaluate a candidate on every machine's holdout set, beside the champion and the best version so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forecasting.forecaster import Forecaster as Model
from service.learning.evaluation import EvaluationResult, HoldoutSet, evaluate
from service.learning.evaluation_store import HoldoutStore
from service.learning.gate import GateDecision, GateThresholds, MachineComparison, decide
from service.learning.model_comparison import BRIER_SKILL, METRICS, PairedPredictions
from service.learning.models import Progress
from wire.identity import MachineId

_SCORES = (*METRICS, "macro_f1")


@dataclass(frozen=True, eq=False)
class Champion:
    """The version that serves, and its model."""

    version: int
    model: Model


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """The candidate's results, the champion's on the new machine (``before``), and the best scores so far."""

    results: Mapping[str, EvaluationResult]
    before: EvaluationResult | None
    best: Mapping[str, Mapping[str, float | None]]
    decision: GateDecision

    @property
    def forgetting(self) -> dict[str, float | None]:
        """The paper's F_T: the mean relative loss of old machines since their best; of Brier skill, absolute."""
        result: dict[str, float | None] = {}
        for metric in _SCORES:
            losses = []
            for name, scores in self.best.items():
                now, best = getattr(self.results[name], metric), scores[metric]
                if now is None or best is None:
                    continue
                relative = metric != BRIER_SKILL  # Brier skill may be zero or negative
                losses.append((best - now) / (best if relative and best > 0 else 1.0))
            result[metric] = round(float(np.mean(losses)), 6) if losses else None
        return result


@dataclass(frozen=True)
class CandidateEvaluation:
    """Evaluates candidates on the stored holdout sets."""

    holdouts: HoldoutStore
    thresholds: GateThresholds

    def run(
        self,
        machine: str,
        candidate: Model,
        holdout: HoldoutSet,
        *,
        champion: Champion | None,
        others: Sequence[str],
        on_progress: Callable[[Progress], None],
    ) -> EvaluationReport:
        """Evaluate a candidate on the new machine and on all others, and let the gate decide."""
        results = {machine: evaluate(candidate, holdout)}
        before = evaluate(champion.model, holdout) if champion else None
        comparisons = [_compare_new(machine, holdout, results[machine], before)]
        best: dict[str, dict[str, float | None]] = {}
        for index, name in enumerate(others, start=1):
            on_progress(Progress("exams", index, len(others) + 1))
            stored = self.holdouts.get(MachineId.parse(name))
            if stored is None or champion is None:
                continue
            results[name] = evaluate(candidate, stored)
            by_version = self.holdouts.results_by_version(MachineId.parse(name))
            if champion.version not in by_version:
                by_version[champion.version] = evaluate(champion.model, stored)
            comparisons.append(_compare_old(name, stored, results[name], by_version, champion.version))
            best[name] = {metric: _score(_best(by_version, metric), metric) for metric in _SCORES}
        on_progress(Progress("gate", len(others) + 1, len(others) + 1))
        return EvaluationReport(results, before, best, decide(comparisons, self.thresholds))


def _compare_new(
    name: str, holdout: HoldoutSet, candidate: EvaluationResult, champion: EvaluationResult | None
) -> MachineComparison:
    if champion is not None:
        pair = _pair(holdout, candidate, champion)
        return MachineComparison(name, new=True, against_best={}, against_champion=pair)
    codes = candidate.targets
    return MachineComparison.first(
        name,
        at=holdout.windows.at,
        labels=holdout.labels(codes),
        base_rate=holdout.base_rates(codes),
        candidate=candidate.probabilities,
    )


def _compare_old(
    name: str,
    holdout: HoldoutSet,
    candidate: EvaluationResult,
    by_version: Mapping[int, EvaluationResult],
    champion: int,
) -> MachineComparison:
    best = {metric: result for metric in METRICS if (result := _best(by_version, metric))}
    return MachineComparison(
        name,
        new=False,
        against_best={metric: _pair(holdout, candidate, result) for metric, result in best.items()},
        against_champion=_pair(holdout, candidate, by_version[champion]),
    )


def _best(by_version: Mapping[int, EvaluationResult], metric: str) -> EvaluationResult | None:
    scored = {score: result for result in by_version.values() if (score := _score(result, metric)) is not None}
    return scored[max(scored)] if scored else None


def _score(result: EvaluationResult | None, metric: str) -> float | None:
    score: float | None = getattr(result, metric) if result else None
    return score


def _pair(holdout: HoldoutSet, candidate: EvaluationResult, reference: EvaluationResult) -> PairedPredictions:
    """Return both models' probabilities of the codes that both forecast."""
    shared = set(reference.targets)
    codes = tuple(code for code in candidate.targets if code in shared)
    return PairedPredictions(
        holdout.windows.at,
        holdout.labels(codes),
        holdout.base_rates(codes),
        candidate.for_codes(codes),
        reference.for_codes(codes),
    )
