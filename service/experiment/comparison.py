"""Run every strategy and seed, and reuse finished runs from disk."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forecasting import history
from service.experiment.evaluation import baselines, holdouts
from service.experiment.fleet import ExperimentFleet, SplitConfig
from service.experiment.notification_figures import FIGURES
from service.experiment.results import Evaluation, ResultRow, Run, groups, row
from service.experiment.run import Clock, RunProgress, run
from service.learning.ocdm import keep
from service.learning.presets import PRESETS, Preset
from service.learning.torch_trainer import TrainingSpec


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare: strategies of a preset, each with seeds 0 to ``seeds`` - 1.

    ``memory`` is the number of windows kept in all; None is the preset's.
    """

    preset: str
    strategies: tuple[str, ...]
    memory: int | None
    seeds: int

    @property
    def size(self) -> str:
        """The size of the memory as a title shows it."""
        preset = PRESETS[self.preset]
        if self.memory is not None or preset.per_machine is None:
            return f"{self.memory or preset.memory:,}"
        return f"{preset.per_machine:,} a machine, at most {preset.memory:,}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """All runs, baselines first, and what they are judged by; ``rates`` are machines by codes in training."""

    plan: ComparisonPlan
    machines: tuple[str, ...]
    codes: tuple[int, ...]
    sizes: tuple[int, ...]
    rates: NDArray[np.float64]
    evaluation: Evaluation
    runs: Mapping[str, Sequence[Run]]

    @property
    def rows(self) -> list[ResultRow]:
        """The table, line by line."""
        return [row(runs, self.evaluation) for runs in self.runs.values()]


def fingerprint(
    data: bytes, cut: SplitConfig, plan: ComparisonPlan, preset: Preset, training: TrainingSpec
) -> str:
    """Return what a finished run is filed under: it stays valid while data, cut and settings are the same."""
    settings = (cut, plan.memory, preset, training, history.VERSION, FIGURES)
    return sha256(data + repr(settings).encode()).hexdigest()[:16]


def compare(
    fleet: ExperimentFleet,
    plan: ComparisonPlan,
    *,
    preset: Preset,
    training: TrainingSpec,
    store: Path,
    clock: Clock,
    on_progress: Callable[[str, int, RunProgress], None],
) -> Comparison:
    """Run what is missing in ``store``, leave it there, and return everything.

    Interrupted at any moment, only the run under way is lost.
    """
    with_history = preset.history and fleet.has_history
    holdout_sets = holdouts(fleet, history=with_history)
    keep(np.eye(2, dtype=np.bool_), 1)  # compiles, which is no part of any memory update
    runs: dict[str, list[Run]] = {line.name: [line] for line in baselines(fleet, holdout_sets)}
    for name in plan.strategies:
        runs[name] = []
        for seed in range(plan.seeds):
            file = store / f"{name}-{seed}.json"
            if file.exists():
                on_progress(name, seed, RunProgress(len(fleet.machines), len(fleet.machines), 1, 1))
            else:
                finished = run(
                    name,
                    fleet,
                    holdout_sets,
                    config=preset.update_config(name, memory=plan.memory, history=with_history),
                    training=training,
                    seed=seed,
                    clock=clock,
                    on_progress=lambda stage, name=name, seed=seed: on_progress(name, seed, stage),  # type: ignore[misc]
                )
                _save(file, finished)
            runs[name].append(Run.from_json(json.loads(file.read_text())))
    columns = fleet.vocabulary.target_columns
    labels = [machine.train.labels(columns) for machine in fleet.machines]
    later = [machine.calibration.labels(columns) for machine in fleet.machines]
    return Comparison(
        plan=plan,
        machines=tuple(machine.machine for machine in fleet.machines),
        codes=fleet.vocabulary.targets,
        sizes=tuple(len(part) for part in labels),
        rates=np.array([part.mean(axis=0) for part in labels]),
        evaluation=Evaluation(
            support=np.array([holdout.samples.labels.any(axis=0) for holdout in holdout_sets]),
            groups=groups(np.concatenate([*labels, *later]).mean(axis=0)),  # the same for every preset
        ),
        runs=runs,
    )


def _save(file: Path, finished: Run) -> None:
    """Write beside and rename, so that a file that is there is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(finished.as_json()))
    beside.replace(file)
