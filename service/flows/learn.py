"""The learn arrow: one machine's history becomes a candidate, judged in every machine's exam.

Run by the process that trains; it only reads. What it brings is committed by whoever holds the job.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from forecasting.forecaster import Forecaster
from forecasting.history import HistorySpec
from forecasting.network import Network
from forecasting.vocabulary import Vocabulary
from service.core.candidate import Candidate, StillKept
from service.core.contrast import METRICS, Pair
from service.core.exam import Exam, Marks, examine
from service.core.gate import Limits, Sitting, Verdict, judge
from service.core.job import Progress
from service.core.machine import Machine
from service.core.memory import Memory
from service.core.ocdm import divergence
from service.core.samples import Samples
from service.core.update import Lesson, Model, Recipe, learn
from service.core.version import Version
from service.core.windows import joined
from service.errors import InputRejected, TrainingFailed
from service.flows.ports import Catalogue, Exams, Memories, Versions
from service.flows.schooling import School, Schooling
from wire.identity import MachineId

Told = Callable[[Progress], None]


class Trainer(Protocol):
    """Whatever turns samples into weights."""

    def __call__(
        self, start: Network | None, new: Samples, replay: Samples | None, *, rng: Generator, told: Told
    ) -> Network:
        """Train from given weights or from fresh ones."""
        ...


class Weights(Protocol):
    """Where a candidate's weights go before it is judged."""

    def save(self, forecaster: Forecaster) -> str:
        """Write a model durably and return its name."""
        ...


@dataclass
class Stopwatch:
    """How long each stage of a learning took."""

    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """Note that a stage has just ended."""
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._since, 3)
        self._since = now


@dataclass(frozen=True)
class Learning:
    """The flow and its ports."""

    school: School
    catalogue: Catalogue
    versions: Versions
    memories: Memories
    exams: Exams
    weights: Weights
    recipe: Recipe
    history: HistorySpec
    limits: Limits
    code_version: str

    def learn(self, machine: Machine, *, now: datetime, train: Trainer, told: Told) -> Candidate:
        """Learn a machine on top of the champion, with replay, and let the gate judge the result."""
        watch = Stopwatch()
        told(Progress("dataset"))
        champion = self.versions.champion()
        before = self._load(champion)
        parts = self.school.cut(machine, now, self.history)
        if len(parts.train) < self.school.curriculum.fewest:
            fewest = self.school.curriculum.fewest
            raise InputRejected(f"{machine.id} has {len(parts.train)} windows to learn from and needs {fewest}.")
        vocabulary = self._vocabulary(before, parts)
        memory = self.memories.of(champion.number) if champion else Memory()
        watch.lap("dataset")
        # The same champion and machine give the same bits, however often a job has to be taken up again.
        rng = np.random.default_rng([champion.number if champion else 0, machine.row])

        def fit(start: Network | None, new: Samples, replay: Samples | None) -> Network:
            watch.lap("memory")
            trained = train(start, new, replay, rng=rng, told=told)
            watch.lap("training")
            told(Progress("memory"))
            return trained

        model, updated = learn(
            Lesson(str(machine.id), parts.train, parts.calibration),
            network=before.network if before else None,
            memory=memory,
            vocabulary=vocabulary,
            recipe=self.recipe,
            train=fit,
            rng=rng,
        )
        forecaster = self._forecaster(model)
        watch.lap("memory")
        exam = Exam.after(joined([parts.train, parts.calibration]), parts.exam)
        sat, verdict = self._examined(machine, model, exam, champion, before, updated, told)
        watch.lap("exams")
        weights = self.weights.save(forecaster)
        watch.lap("weights")
        return Candidate(
            machine=str(machine.id),
            parent=champion.number if champion else None,
            weights=weights,
            targets=vocabulary.targets,
            kept={
                name: StillKept(task.windows.at, task.held_out.at)
                for name, task in updated.tasks.items()
                if name != str(machine.id)
            },
            task=updated.tasks[str(machine.id)],
            exam=exam,
            marks=sat.marks,
            before=sat.before,
            passed=verdict.passed,
            reasons=verdict.reasons,
            report=self._report(parts, vocabulary, updated, sat, verdict, watch),
        )

    def _load(self, champion: Version | None) -> Forecaster | None:
        if champion is None:
            return None
        model = self.versions.load(champion)
        if (model.spec, model.history) != (self.school.spec, self.history):
            raise TrainingFailed(
                f"{champion.name} looks back {model.spec.lookback} and ahead {model.spec.horizon}; the settings "
                "say otherwise, and what it has learned cannot be carried over. Put the settings back."
            )
        return model

    def _vocabulary(self, before: Forecaster | None, parts: Schooling) -> Vocabulary:
        targets = [code for code, entry in self.catalogue.entries().items() if entry.target]
        if not targets:
            raise InputRejected(
                "The catalogue names no target code, so there is nothing to forecast. "
                "Load one: alarmcast admin catalogue load FILE"
            )
        known = before.vocabulary if before else Vocabulary((), ())
        return known.extended(parts.train.codes.tolist(), targets)

    def _forecaster(self, model: Model) -> Forecaster:
        return Forecaster(
            self.school.spec, model.vocabulary, model.network, model.calibration, model.thresholds, self.history
        )

    def _examined(
        self,
        machine: Machine,
        model: Model,
        exam: Exam,
        champion: Version | None,
        before: Forecaster | None,
        memory: Memory,
        told: Told,
    ) -> "tuple[_Sat, Verdict]":
        """Let the candidate sit every machine's exam, beside the champion and the best that ever served."""
        old = [name for name in memory.tasks if name != str(machine.id)]
        marks = {str(machine.id): examine(model, exam, history=True)}
        unseen = examine(_model(before), exam, history=True) if before else None
        sittings = [_new(str(machine.id), exam, marks[str(machine.id)], unseen)]
        best: dict[str, dict[str, float | None]] = {}
        for place, name in enumerate(old, start=1):
            told(Progress("exams", place, len(old) + 1))
            paper = self.exams.of(MachineId.parse(name))
            if paper is None or champion is None or before is None:
                continue
            marks[name] = examine(model, paper, history=True)
            answers = self.exams.answers(MachineId.parse(name))
            if champion.number not in answers:
                answers[champion.number] = examine(_model(before), paper, history=True)
            sittings.append(_old(name, paper, marks[name], answers, champion.number))
            best[name] = {metric: _best(answers, metric) for metric in METRICS} | {
                "macro_f1": _best(answers, "macro_f1")
            }
        told(Progress("gate", len(old) + 1, len(old) + 1))
        return _Sat(marks, unseen, best), judge(sittings, self.limits)

    def _report(
        self,
        parts: Schooling,
        vocabulary: Vocabulary,
        memory: Memory,
        sat: "_Sat",
        verdict: Verdict,
        watch: Stopwatch,
    ) -> dict[str, Any]:
        labels = {name: task.windows.labels(vocabulary.target_columns) for name, task in memory.tasks.items()}
        together = np.concatenate(list(labels.values()))
        by_code = zip(vocabulary.targets, together.sum(axis=0).tolist(), strict=True)
        return {
            "summary": _summary(sat.marks, vocabulary),
            "code_version": self.code_version,
            "fingerprint": _fingerprint(parts),
            "windows": {name: len(getattr(parts, name)) for name in ("train", "calibration", "exam")},
            "codes": {"inputs": len(vocabulary.inputs), "targets": len(vocabulary.targets)},
            "memory": {
                "by_machine": {
                    name: {"replayed": len(task.windows), "held_out": len(task.held_out)}
                    for name, task in memory.tasks.items()
                },
                "by_code": {str(code): count for code, count in by_code},
                "kl_to_uniform": round(divergence(together), 6) if together.any() else None,
            },
            "forgetting": _forgetting(sat),
            "seconds": watch.seconds,
            "verdict": verdict.as_json(),
        }


@dataclass(frozen=True, eq=False)
class _Sat:
    """All marks of one learning: the candidate's, the champion's on the new machine, and the best so far."""

    marks: Mapping[str, Marks]
    before: Marks | None
    best: Mapping[str, Mapping[str, float | None]]


def _new(name: str, exam: Exam, own: Marks, unseen: Marks | None) -> Sitting:
    if unseen is None:
        codes = own.targets
        return Sitting.first(
            name,
            at=exam.windows.at,
            labels=exam.labels(codes),
            base_rate=exam.base_rates(codes),
            candidate=own.probabilities,
        )
    return Sitting(name, new=True, against_best={}, against_champion=_pair(exam, own, unseen))


def _old(name: str, exam: Exam, own: Marks, answers: Mapping[int, Marks], champion: int) -> Sitting:
    best = {}
    for metric in METRICS:
        scored = [one for one in answers.values() if getattr(one, metric) is not None]
        if scored:
            best[metric] = _pair(exam, own, max(scored, key=lambda one, metric=metric: getattr(one, metric)))  # type: ignore[misc]
    return Sitting(name, new=False, against_best=best, against_champion=_pair(exam, own, answers[champion]))


def _pair(exam: Exam, candidate: Marks, reference: Marks) -> Pair:
    """Return both models' answers on the codes that both forecast."""
    codes = tuple(code for code in candidate.targets if code in set(reference.targets))
    return Pair(
        exam.windows.at, exam.labels(codes), exam.base_rates(codes), candidate.of(codes), reference.of(codes)
    )


def _model(forecaster: Forecaster) -> Model:
    return Model(forecaster.vocabulary, forecaster.network, forecaster.calibration, forecaster.thresholds)


def _best(answers: Mapping[int, Marks], figure: str) -> float | None:
    return max((value for one in answers.values() if (value := getattr(one, figure)) is not None), default=None)


def _forgetting(sat: _Sat) -> dict[str, float | None]:
    """Return the paper's F_T of each figure: the mean relative loss of the old machines since their best."""
    result: dict[str, float | None] = {}
    for figure in (*METRICS, "macro_f1"):
        losses = []
        for name, best in sat.best.items():
            now, then = getattr(sat.marks[name], figure), best[figure]
            if now is not None and then is not None:
                losses.append((then - now) / then if then > 0 else 0.0)
        result[figure] = round(float(np.mean(losses)), 6) if losses else None
    return result


def _summary(marks: Mapping[str, Marks], vocabulary: Vocabulary) -> str:
    precision = [one.average_precision for one in marks.values() if one.average_precision is not None]
    skill = [one.brier_skill for one in marks.values() if one.brier_skill is not None]
    return (
        f"{len(marks)} machines, {len(vocabulary.inputs)} codes, exam average precision "
        f"{np.mean(precision) if precision else float('nan'):.3f}, Brier skill over the machine's base rate "
        f"{np.mean(skill) if skill else float('nan'):+.3f}"
    )


def _fingerprint(parts: Schooling) -> str:
    """Return a digest of what was learned from: the same windows, the same fingerprint."""
    digest = sha256()
    for part in (parts.train, parts.calibration, parts.exam):
        for array in (part.at, part.codes, part.counts, part.outcomes, part.history):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
