"""Train a candidate: one machine's history, learned on top of the champion and evaluated by the gate.

Runs in the training process, which only reads. The process that holds the job commits the result.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

import numpy as np
from numpy.random import Generator

from forecasting.forecaster import Forecaster as Model
from forecasting.history import HistorySpec
from forecasting.network import Network
from forecasting.vocabulary import Vocabulary
from service.database.weight_files import WeightsFolder
from service.errors import InputRejected, TrainingFailed
from service.forecasts.version import Version
from service.forecasts.version_store import VersionStore
from service.http.message import MACHINE, Sentence
from service.learning.candidate import Candidate, RetainedSamples
from service.learning.candidate_evaluation import CandidateEvaluation, Champion, EvaluationReport
from service.learning.continual_update import UpdateConfig, halve_step, update_model
from service.learning.dataset import OTHER, TrainingData
from service.learning.evaluation import HoldoutSet
from service.learning.memory import Memory
from service.learning.memory_store import MemoryStore
from service.learning.models import Progress
from service.learning.ocdm import divergence
from service.learning.training_data import DatasetBuilder
from service.learning.windows import Samples
from service.machines.catalogue import CatalogueEntry
from service.machines.catalogue_store import CatalogueStore
from service.machines.models import Machine

ProgressCallback = Callable[[Progress], None]
_MAX_STEP_HALVINGS: Final = 3  # an eighth of the step is hardly worth a version


class Trainer(Protocol):
    """Trains a network on new and replayed samples, from given weights or from fresh ones."""

    def __call__(
        self,
        start: Network | None,
        new: Samples,
        replay: Samples | None,
        *,
        rng: Generator,
        on_progress: ProgressCallback,
    ) -> Network: ...


@dataclass
class StageTimer:
    """Measures the seconds of each stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage."""
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._since, 3)
        self._since = now


@dataclass(frozen=True)
class CandidateTrainer:
    """Trains and evaluates a candidate."""

    datasets: DatasetBuilder
    catalogue: CatalogueStore
    versions: VersionStore
    memories: MemoryStore
    evaluation: CandidateEvaluation
    weights: WeightsFolder
    config: UpdateConfig
    code_version: str

    def run(self, machine: Machine, *, now: datetime, train: Trainer, on_progress: ProgressCallback) -> Candidate:
        """Train a machine on top of the champion, with replay, and let the gate decide.

        If the gate rejects the candidate, the weight step is halved and evaluated again.
        """
        timer, name = StageTimer(), str(machine.id)
        on_progress(Progress("dataset"))
        version = self.versions.champion()
        before = self._load(version)
        listed = self.catalogue.entries().of_admins()
        data = self._data(machine, now, listed)
        vocabulary = self._vocabulary(before, data, listed)
        left_out = data.left_out + len(set(data.unlisted) - set(vocabulary.inputs))
        memory = self.memories.get(version.id) if version else Memory()
        timer.lap("dataset")
        # The same champion and machine give the same bits, however often the job is repeated.
        rng = np.random.default_rng([version.id if version else 0, machine.row_id])

        def fit(start: Network | None, new: Samples, replay: Samples | None) -> Network:
            timer.lap("memory")
            trained = train(start, new, replay, rng=rng, on_progress=on_progress)
            timer.lap("training")
            on_progress(Progress("memory"))
            return trained

        model, updated = update_model(
            data,
            network=before.network if before else None,
            memory=memory,
            vocabulary=vocabulary,
            config=self.config,
            train=fit,
            rng=rng,
        )
        timer.lap("memory")
        holdout = HoldoutSet.build([data.train, data.calibration], data.holdout)
        others = [other for other in updated.tasks if other != name]
        champion = Champion(version.id, before) if version and before else None
        report = self.evaluation.run(
            name, model, holdout, champion=champion, others=others, on_progress=on_progress
        )
        halvings = 0
        while before is not None and not report.decision.passed and halvings < _MAX_STEP_HALVINGS:
            model = halve_step(model, before.network, data=data, memory=updated, config=self.config)
            report = self.evaluation.run(
                name, model, holdout, champion=champion, others=others, on_progress=on_progress
            )
            halvings += 1
        timer.lap("exams")
        weights = self.weights.save(model)
        timer.lap("weights")
        tasks = updated.tasks
        return Candidate.pack(
            machine=name,
            parent=version.id if version else None,
            weights=weights,
            targets=vocabulary.targets,
            retained={other: RetainedSamples.between(memory.tasks[other], tasks[other]) for other in others},
            task=tasks[name],
            holdout=holdout,
            results=report.results,
            before=report.before,
            passed=report.decision.passed,
            reasons=report.decision.reasons,
            undecided=report.decision.undecided,
            notes=(self._left_out_note(name, left_out),) if left_out else (),
            report=self._build_report(data, vocabulary, updated, report)
            | {"halved": halvings, "seconds": timer.seconds}
            | {"left_out": _left_out(version, tasks, name, left_out)},
        )

    def _load(self, version: Version | None) -> Model | None:
        if version is None:
            return None
        model = self.versions.load(version)
        if (model.spec, model.history) != (self.config.spec, self.config.history):
            raise TrainingFailed(
                f"{version.name} looks back {model.spec.lookback} and ahead {model.spec.horizon}; the settings "
                "say otherwise, and what it has learned cannot be carried over. Put the settings back."
            )
        return model

    def _data(self, machine: Machine, now: datetime, listed: Collection[int]) -> TrainingData:
        data = self.datasets.build(machine, now, self.config.history or HistorySpec(), listed=listed)
        needed = self.datasets.policy.min_windows
        if len(data.train) < needed:
            raise InputRejected(f"{machine.id} has {len(data.train)} windows to learn from and needs {needed}.")
        return data

    def _vocabulary(
        self, before: Model | None, data: TrainingData, listed: Mapping[int, CatalogueEntry]
    ) -> Vocabulary:
        """Return the codes of the model: all of the champion's, and the new ones up to the limit."""
        targets = [code for code, entry in listed.items() if entry.target]
        if not targets:
            raise InputRejected(
                "The catalogue names no target code, so there is nothing to forecast. "
                "Load one, then enrol the machine again: alarmcast admin catalogue load FILE"
            )
        vocabulary = before.vocabulary if before else Vocabulary((), ())
        limit = self.datasets.policy.codes.in_model
        room = max(0, limit - sum(code not in listed for code in vocabulary.inputs))
        old = set(vocabulary.inputs)
        new = [code for code in data.unlisted if code not in old]
        unwanted = {OTHER, *new[room:]}
        return vocabulary.extend([code for code in data.train.codes.tolist() if code not in unwanted], targets)

    def _left_out_note(self, name: str, left_out: int) -> Sentence:
        limits = self.datasets.policy.codes
        text = (
            f"{left_out} codes of {MACHINE} were not learned and count as unknown: they are not in the catalogue, "
            f"of which a machine may bring {limits.per_machine} (max_codes_per_machine) and the model may read "
            f"{limits.in_model} (max_codes_per_model). Look at what the machine sends, and put codes that matter "
            "into the catalogue."
        )
        return Sentence(text, name)

    def _build_report(
        self, data: TrainingData, vocabulary: Vocabulary, memory: Memory, report: EvaluationReport
    ) -> dict[str, Any]:
        """Return the version's report as JSON."""
        labels = np.concatenate([task.windows.labels(vocabulary.target_columns) for task in memory.tasks.values()])
        by_code = zip(vocabulary.targets, labels.sum(axis=0).tolist(), strict=True)
        offered = [
            sum(task.frequency.get(code, 0) for task in memory.tasks.values()) for code in vocabulary.targets
        ]
        return {
            "summary": _summary(report, vocabulary),
            "code_version": self.code_version,
            "fingerprint": data.fingerprint,
            "windows": {
                "train": len(data.train),
                "calibration": len(data.calibration),
                "exam": len(data.holdout),
            },
            "codes": {"inputs": len(vocabulary.inputs), "targets": len(vocabulary.targets)},
            "memory": {
                "by_machine": {
                    name: {"replayed": len(task.windows), "held_out": len(task.held_out)}
                    for name, task in memory.tasks.items()
                },
                "by_code": {str(code): count for code, count in by_code},
                "kl_to_uniform": round(divergence(labels), 6) if labels.any() else None,
                # The balance of a random selection, for comparison.
                "offered_by_code": dict(zip(map(str, vocabulary.targets), offered, strict=True)),
                "kl_offered": round(divergence(np.array([offered])), 6) if any(offered) else None,
            },
            "horizons": _horizon_means(report),
            "forgetting": report.forgetting,
            "verdict": report.decision.as_json(),
        }


def _summary(report: EvaluationReport, vocabulary: Vocabulary) -> str:
    results = report.results.values()
    precision = [result.average_precision for result in results if result.average_precision is not None]
    skill = [result.brier_skill for result in results if result.brier_skill is not None]
    machines = "1 machine" if len(results) == 1 else f"{len(results)} machines"
    return (
        f"{machines}, {len(vocabulary.inputs)} codes, holdout average precision "
        f"{f'{np.mean(precision):.3f}' if precision else 'unknown'}, Brier skill over the machine's base rate "
        f"{f'{np.mean(skill):+.3f}' if skill else 'unknown'}"
    )


def _horizon_means(report: EvaluationReport) -> dict[str, dict[str, float]]:
    """Return the scores of each horizon as means over machines."""
    values: dict[str, dict[str, list[float]]] = {}
    for result in report.results.values():
        for horizon, scores in result.by_horizon.items():
            for name, score in scores.items():
                if score is not None:
                    values.setdefault(horizon, {}).setdefault(name, []).append(score)
    return {
        horizon: {name: round(float(np.mean(scores)), 6) for name, scores in by_name.items()}
        for horizon, by_name in values.items()
    }


def _left_out(version: Version | None, tasks: Iterable[str], name: str, left_out: int) -> dict[str, int]:
    """Return, for each learned machine, the number of its codes that are not learned, if any."""
    before = version.report.get("left_out", {}) if version else {}
    return {
        machine: count for machine in tasks if (count := left_out if machine == name else before.get(machine, 0))
    }
