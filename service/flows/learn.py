"""A first model from all machines' history: windows, training, calibration, thresholds, an exam, a version."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forecasting.forecaster import Forecaster
from forecasting.network import Network
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.core.calibration import fit, thresholds
from service.core.dataset import Split, covered_moments, split, windows
from service.core.machine import Machine
from service.core.metrics import average_precision, brier_skill, macro
from service.core.samples import Samples, stacked
from service.core.version import Version
from service.core.windows import Windows
from service.errors import InputRejected
from service.flows.ports import Catalogue, EventLog, Machines
from wire.identity import MachineId

ENOUGH_WINDOWS = 336  # two weeks of hours; less says nothing about a week's rhythm
_CALIBRATION, _EXAM = 0.15, 0.15


class Trainer(Protocol):
    """Whatever turns samples into weights."""

    def __call__(self, samples: Samples, progress: Callable[[int], None], /) -> Network:
        """Train, telling the number of each finished epoch."""
        ...


class NewVersions(Protocol):
    """Where a learned model goes."""

    def add_and_promote(self, forecaster: Forecaster, *, report: dict[str, Any], at: datetime) -> Version:
        """Store a model and let it serve."""
        ...


@dataclass(frozen=True, eq=False)
class _Task:
    """One machine's windows, cut in time."""

    machine: MachineId
    windows: Windows
    parts: Split

    def samples(self, part: str, vocabulary: Vocabulary) -> Samples:
        return Samples.of(self.windows.take(getattr(self.parts, part)), vocabulary)


@dataclass(frozen=True)
class Learning:
    """The flow and its ports."""

    machines: Machines
    log: EventLog
    catalogue: Catalogue
    versions: NewVersions
    spec: WindowSpec
    keep: timedelta

    def first_model(self, train: Trainer, *, now: datetime, progress: Callable[[int], None]) -> Version:
        """Learn all machines with enough history at once, and promote the result."""
        targets = [code for code, entry in self.catalogue.entries().items() if entry.target]
        if not targets:
            raise InputRejected(
                "The catalogue names no target code. Load one: alarmcast admin catalogue load FILE"
            )
        machines = self.machines.all()
        tasks = [task for machine in machines if (task := self._task(machine, now))]
        if not tasks:
            raise InputRejected(
                f"No machine has {ENOUGH_WINDOWS} hourly windows of history to learn from yet "
                f"({len(machines)} registered). Load history: alarmcast admin history load SITE/MACHINE FILE"
            )
        codes = {int(code) for task in tasks for code in task.windows.codes}
        vocabulary = Vocabulary((), ()).extended(codes, targets)
        network = train(stacked([task.samples("train", vocabulary) for task in tasks]), progress)
        forecaster = self._calibrated(network, vocabulary, tasks)
        report = _report(forecaster, tasks)
        return self.versions.add_and_promote(forecaster, report=report, at=now)

    def _task(self, machine: Machine, now: datetime) -> _Task | None:
        first = self.log.first_at(machine)
        if first is None:
            return None
        since = max(first, now - self.keep)
        series = self.log.series(machine, since, now)
        deaf = [(gap.first_at, gap.last_at) for gap in self.log.gaps(machine, since, now)]
        moments = covered_moments((since, now), self.spec, deaf=deaf)
        if len(moments) < ENOUGH_WINDOWS:
            return None
        cut = windows(series, moments, self.spec, since=since)
        return _Task(machine.id, cut, split(cut.at, self.spec.horizon, calibration=_CALIBRATION, exam=_EXAM))

    def _calibrated(self, network: Network, vocabulary: Vocabulary, tasks: Sequence[_Task]) -> Forecaster:
        held = [task.samples("calibration", vocabulary) for task in tasks]
        together = stacked(held)
        calibration = fit(network.logits(together.inputs), together.labels)
        probabilities = [calibration.probabilities(network.logits(one.inputs)) for one in held]
        limits = thresholds(probabilities, [one.labels for one in held])
        return Forecaster(self.spec, vocabulary, network, calibration, limits)


def _report(model: Forecaster, tasks: Sequence[_Task]) -> dict[str, Any]:
    """Examine the model on each machine's last windows, which nothing above has seen."""
    exams: dict[str, dict[str, float | int]] = {}
    for task in tasks:
        train, exam = (task.samples(part, model.vocabulary) for part in ("train", "exam"))
        probabilities = model.calibration.probabilities(model.network.logits(exam.inputs))
        exams[str(task.machine)] = {
            "windows": len(task.windows),
            "average_precision": _score(average_precision(exam.labels, probabilities), exam),
            "brier_skill": round(brier_skill(exam.labels, probabilities, train.labels.mean(axis=0)), 4),
        }
    precision = float(np.nanmean([exam["average_precision"] for exam in exams.values()]))
    skill = float(np.mean([exam["brier_skill"] for exam in exams.values()]))
    summary = (
        f"{len(tasks)} machines, {len(model.vocabulary.inputs)} codes, exam average precision {precision:.3f}, "
        f"Brier skill over the machine's base rate {skill:+.3f}"
    )
    return {"summary": summary, "exams": exams}


def _score(values: NDArray[np.float64], exam: Samples) -> float:
    return round(macro(values, np.asarray(exam.labels.any(axis=0))), 4)
