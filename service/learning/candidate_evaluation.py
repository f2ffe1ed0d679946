"""The learn arrow's exams: a candidate sits every machine's, beside the champion and the best that ever served."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.learning.continual_update import Model
from service.learning.evaluation import EvaluationResult, HoldoutSet, evaluate
from service.learning.evaluation_store import HoldoutStore
from service.learning.gate import GateDecision, GateThresholds, MachineComparison, decide
from service.learning.job import Progress
from service.learning.model_comparison import BRIER_SKILL, METRICS, PairedPredictions
from wire.identity import MachineId

_FIGURES = (*METRICS, "macro_f1")


@dataclass(frozen=True, eq=False)
class Champion:
    """The version that serves, and its model."""

    number: int
    model: Model


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """All marks of one learning: the candidate's, the champion's on the new machine unseen, the best so far."""

    results: Mapping[str, EvaluationResult]
    before: EvaluationResult | None
    best: Mapping[str, Mapping[str, float | None]]
    decision: GateDecision

    @property
    def forgetting(self) -> dict[str, float | None]:
        """The paper's F_T: the mean relative loss of old machines since their best; of Brier skill, absolute."""
        result: dict[str, float | None] = {}
        for figure in _FIGURES:
            losses = []
            for name, best in self.best.items():
                now, then = getattr(self.results[name], figure), best[figure]
                if now is None or then is None:
                    continue
                relative = figure != BRIER_SKILL  # which may be nought or less, so that no share of it can be lost
                losses.append((then - now) / (then if relative and then > 0 else 1.0))
            result[figure] = round(float(np.mean(losses)), 6) if losses else None
        return result


@dataclass(frozen=True)
class CandidateEvaluation:
    """The exams' arithmetic and where they are kept."""

    exams: HoldoutStore
    limits: GateThresholds

    def run(
        self,
        machine: str,
        candidate: Model,
        exam: HoldoutSet,
        *,
        champion: Champion | None,
        others: Sequence[str],
        told: Callable[[Progress], None],
    ) -> EvaluationReport:
        """Let a candidate sit the exam of the machine it has just learned, and those of all the others."""
        marks = {machine: evaluate(candidate, exam, history=True)}
        unseen = evaluate(champion.model, exam, history=True) if champion else None
        sittings = [_new(machine, exam, marks[machine], unseen)]
        best: dict[str, dict[str, float | None]] = {}
        for place, name in enumerate(others, start=1):
            told(Progress("exams", place, len(others) + 1))
            paper = self.exams.get(MachineId.parse(name))
            if paper is None or champion is None:
                continue
            marks[name] = evaluate(candidate, paper, history=True)
            answers = self.exams.results_by_version(MachineId.parse(name))
            if champion.number not in answers:
                answers[champion.number] = evaluate(champion.model, paper, history=True)
            sittings.append(_old(name, paper, marks[name], answers, champion.number))
            best[name] = {figure: _value(_best(answers, figure), figure) for figure in _FIGURES}
        told(Progress("gate", len(others) + 1, len(others) + 1))
        return EvaluationReport(marks, unseen, best, decide(sittings, self.limits))


def _new(name: str, exam: HoldoutSet, own: EvaluationResult, unseen: EvaluationResult | None) -> MachineComparison:
    if unseen is not None:
        return MachineComparison(name, new=True, against_best={}, against_champion=_pair(exam, own, unseen))
    codes = own.targets
    return MachineComparison.first(
        name,
        at=exam.windows.at,
        labels=exam.labels(codes),
        base_rate=exam.base_rates(codes),
        candidate=own.probabilities,
    )


def _old(
    name: str, exam: HoldoutSet, own: EvaluationResult, answers: Mapping[int, EvaluationResult], champion: int
) -> MachineComparison:
    best = {metric: found for metric in METRICS if (found := _best(answers, metric))}
    return MachineComparison(
        name,
        new=False,
        against_best={metric: _pair(exam, own, one) for metric, one in best.items()},
        against_champion=_pair(exam, own, answers[champion]),
    )


def _best(answers: Mapping[int, EvaluationResult], figure: str) -> EvaluationResult | None:
    scored = {value: one for one in answers.values() if (value := _value(one, figure)) is not None}
    return scored[max(scored)] if scored else None


def _value(marks: EvaluationResult | None, figure: str) -> float | None:
    value: float | None = getattr(marks, figure) if marks else None
    return value


def _pair(exam: HoldoutSet, candidate: EvaluationResult, reference: EvaluationResult) -> PairedPredictions:
    """Return both models' answers on the codes that both forecast."""
    known = set(reference.targets)
    codes = tuple(code for code in candidate.targets if code in known)
    return PairedPredictions(
        exam.windows.at,
        exam.labels(codes),
        exam.base_rates(codes),
        candidate.for_codes(codes),
        reference.for_codes(codes),
    )
