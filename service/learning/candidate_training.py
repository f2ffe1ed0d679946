"""The learn arrow: one machine's history becomes a candidate, judged in every machine's exam.

Run by the process that trains; it only reads. What it brings is committed by whoever holds the job.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
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
from service.errors import InputRejected, TrainingFailed
from service.forecasts.version import Version
from service.forecasts.version_store import VersionStore
from service.http.message import MACHINE, Sentence
from service.learning.candidate import Candidate, RetainedSamples
from service.learning.candidate_evaluation import CandidateEvaluation, Champion, EvaluationReport
from service.learning.code_limits import OTHER
from service.learning.continual_update import Model, TaskData, UpdateConfig, halve_step, update_model
from service.learning.evaluation import HoldoutSet
from service.learning.job import Progress
from service.learning.memory import Memory
from service.learning.memory_store import MemoryStore
from service.learning.ocdm import divergence
from service.learning.samples import Samples
from service.learning.training_data import DatasetBuilder, TrainingData
from service.machines.catalogue import CatalogueEntry
from service.machines.catalogue_store import CatalogueStore
from service.machines.models import Machine

ProgressCallback = Callable[[Progress], None]
_MAX_STEP_HALVINGS = 3  # an eighth of the way is hardly worth a version, and less is not


class Trainer(Protocol):
    """Whatever turns samples into weights."""

    def __call__(
        self,
        start: Network | None,
        new: Samples,
        replay: Samples | None,
        *,
        rng: Generator,
        told: ProgressCallback,
    ) -> Network:
        """Train from given weights or from fresh ones."""
        ...


class Weights(Protocol):
    """Where a candidate's weights go before it is judged."""

    def save(self, forecaster: Forecaster) -> str:
        """Write a model durably and return its name."""
        ...


@dataclass
class StageTimer:
    """How long each stage of a learning took."""

    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """Note that a stage has just ended."""
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._since, 3)
        self._since = now


@dataclass(frozen=True)
class CandidateTrainer:
    """The flow and its ports."""

    school: DatasetBuilder
    catalogue: CatalogueStore
    versions: VersionStore
    memories: MemoryStore
    examination: CandidateEvaluation
    weights: Weights
    recipe: UpdateConfig
    history: HistorySpec
    code_version: str

    def run(self, machine: Machine, *, now: datetime, train: Trainer, told: ProgressCallback) -> Candidate:
        """Learn a machine on top of the champion, with replay, and let the gate judge the result."""
        watch, name = StageTimer(), str(machine.id)
        told(Progress("dataset"))
        champion = self.versions.champion()
        before = self._load(champion)
        listed = self.catalogue.entries()
        parts = self._parts(machine, now, listed)
        vocabulary = self._vocabulary(before, parts, listed)
        left_out = parts.chosen.left_out + len(set(parts.chosen.unlisted) - set(vocabulary.inputs))
        memory = self._memory(champion, name)
        watch.lap("dataset")
        # The same champion and machine give the same bits, however often a job has to be taken up again.
        rng = np.random.default_rng([champion.id if champion else 0, machine.row_id])

        def fit(start: Network | None, new: Samples, replay: Samples | None) -> Network:
            watch.lap("memory")
            trained = train(start, new, replay, rng=rng, told=told)
            watch.lap("training")
            told(Progress("memory"))
            return trained

        lesson = TaskData(name, parts.train, parts.calibration)
        model, updated = update_model(
            lesson,
            network=before.network if before else None,
            memory=memory,
            vocabulary=vocabulary,
            recipe=self.recipe,
            train=fit,
            rng=rng,
        )
        watch.lap("memory")
        exam = HoldoutSet.build([parts.train, parts.calibration], parts.exam)
        others = [other for other in updated.tasks if other != name]
        reigning = Champion(champion.id, _model(before)) if champion and before else None
        report = self.examination.run(name, model, exam, champion=reigning, others=others, told=told)
        halved = 0
        # Too far for some machine is not too far at half the way: the fleet learns as much as the gate lets it.
        while before is not None and not report.decision.passed and halved < _MAX_STEP_HALVINGS:
            model = halve_step(model, before.network, lesson=lesson, memory=updated, recipe=self.recipe)
            report = self.examination.run(name, model, exam, champion=reigning, others=others, told=told)
            halved += 1
        watch.lap("exams")
        weights = self.weights.save(self._forecaster(model))
        watch.lap("weights")
        tasks = updated.tasks
        return Candidate(
            machine=name,
            parent=champion.id if champion else None,
            weights=weights,
            targets=vocabulary.targets,
            kept={other: RetainedSamples(tasks[other].windows.at, tasks[other].held_out.at) for other in others},
            task=tasks[name],
            exam=exam,
            marks=report.results,
            before=report.before,
            passed=report.decision.passed,
            reasons=report.decision.reasons,
            undecided=report.decision.undecided,
            notes=(self._left_out_note(name, left_out),) if left_out else (),
            report=self._build_report(parts, vocabulary, updated, report)
            | {"halved": halved, "seconds": watch.seconds}
            | {"left_out": _left_out(champion, tasks, name, left_out)},
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

    def _parts(self, machine: Machine, now: datetime, listed: Collection[int]) -> TrainingData:
        parts = self.school.build(machine, now, self.history, listed=listed)
        fewest = self.school.policy.min_windows
        if len(parts.train) < fewest:
            raise InputRejected(f"{machine.id} has {len(parts.train)} windows to learn from and needs {fewest}.")
        return parts

    def _vocabulary(
        self, before: Forecaster | None, parts: TrainingData, listed: Mapping[int, CatalogueEntry]
    ) -> Vocabulary:
        """Return the codes of the model: all that it knew, and the new ones for which there is room."""
        targets = [code for code, entry in listed.items() if entry.target]
        if not targets:
            raise InputRejected(
                "The catalogue names no target code, so there is nothing to forecast. "
                "Load one, then enrol the machine again: alarmcast admin catalogue load FILE"
            )
        known = before.vocabulary if before else Vocabulary((), ())
        limit = self.school.policy.codes.in_model
        room = max(0, limit - sum(code not in listed for code in known.inputs))
        old = set(known.inputs)
        new = [code for code in parts.chosen.unlisted if code not in old]
        unwanted = {OTHER, *new[room:]}
        return known.extend([code for code in parts.train.codes.tolist() if code not in unwanted], targets)

    def _left_out_note(self, name: str, left_out: int) -> Sentence:
        limits = self.school.policy.codes
        words = (
            f"{left_out} codes of {MACHINE} were not learned and count as unknown: they are not in the catalogue, "
            f"of which a machine may bring {limits.per_machine} (max_codes_per_machine) and the model may read "
            f"{limits.in_model} (max_codes_per_model). Look at what the machine sends, and put codes that matter "
            "into the catalogue."
        )
        return Sentence(words, name)

    def _memory(self, champion: Version | None, name: str) -> Memory:
        memory = self.memories.get(champion.id) if champion else Memory()
        machines, size = len({*memory.tasks, name}), self.recipe.memory
        if round(size * (1 - self.recipe.held_out)) < machines or round(size * self.recipe.held_out) < machines:
            raise InputRejected(
                f"A memory of {size} windows is too small for {machines} machines. Raise ALARMCAST_MEMORY_WINDOWS."
            )
        return memory

    def _forecaster(self, model: Model) -> Forecaster:
        return Forecaster(
            self.school.spec, model.vocabulary, model.network, model.calibration, model.thresholds, self.history
        )

    def _build_report(
        self, parts: TrainingData, vocabulary: Vocabulary, memory: Memory, report: EvaluationReport
    ) -> dict[str, Any]:
        """Return all that is worth knowing of a version, as JSON."""
        labels = [task.windows.labels(vocabulary.target_columns) for task in memory.tasks.values()]
        together = np.concatenate(labels)
        by_code = zip(vocabulary.targets, together.sum(axis=0).tolist(), strict=True)
        offered = [
            sum(task.frequency.get(code, 0) for task in memory.tasks.values()) for code in vocabulary.targets
        ]
        return {
            "summary": _summary(report, vocabulary),
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
                # What it was chosen from: the balance that a fair draw would have had.
                "offered_by_code": dict(zip(map(str, vocabulary.targets), offered, strict=True)),
                "kl_offered": round(divergence(np.array([offered])), 6) if any(offered) else None,
            },
            "forgetting": report.forgetting,
            "verdict": report.decision.as_json(),
        }


def _model(forecaster: Forecaster) -> Model:
    return Model(forecaster.vocabulary, forecaster.network, forecaster.calibration, forecaster.thresholds)


def _summary(report: EvaluationReport, vocabulary: Vocabulary) -> str:
    marks = report.results.values()
    precision = [one.average_precision for one in marks if one.average_precision is not None]
    skill = [one.brier_skill for one in marks if one.brier_skill is not None]
    machines = "1 machine" if len(marks) == 1 else f"{len(marks)} machines"
    return (
        f"{machines}, {len(vocabulary.inputs)} codes, exam average precision "
        f"{f'{np.mean(precision):.3f}' if precision else 'unknown'}, Brier skill over the machine's base rate "
        f"{f'{np.mean(skill):+.3f}' if skill else 'unknown'}"
    )


def _left_out(champion: Version | None, tasks: Iterable[str], name: str, left_out: int) -> dict[str, int]:
    """Return of each machine that the model has learned how many codes it was learned without, if any."""
    before = champion.report.get("left_out", {}) if champion else {}
    return {
        machine: count for machine in tasks if (count := left_out if machine == name else before.get(machine, 0))
    }


def _fingerprint(parts: TrainingData) -> str:
    """Return a digest of what was learned from: the same events and moments, the same fingerprint."""
    digest = sha256()
    for array in (parts.events.times, parts.events.codes, parts.train.at, parts.calibration.at, parts.exam.at):
        digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(len(array).to_bytes(8, "big"))
    return digest.hexdigest()
