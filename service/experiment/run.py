"""Run one strategy: learn the fleet machine by machine and evaluate after each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator

from forecasting.network import Network
from service.experiment.evaluation import MachineHoldout, score_forecasts
from service.experiment.fleet import ExperimentFleet
from service.experiment.results import ResourceUse, Run, RunScores
from service.learning.continual_update import UpdateConfig, predict, update_model
from service.learning.memory import Memory
from service.learning.ocdm import Labels, divergence
from service.learning.strategies import Indices, Strategy, TaskBuffer
from service.learning.torch_trainer import EpochProgress, TrainingSpec, train
from service.learning.windows import Samples

Clock = Callable[[], float]


@dataclass(frozen=True)
class RunProgress:
    """How far a run is: which machine is being learned, and which epoch of how many."""

    machine: int
    machines: int
    epoch: int
    epochs: int


def run(
    name: str,
    fleet: ExperimentFleet,
    holdout_sets: Sequence[MachineHoldout],
    *,
    config: UpdateConfig,
    training: TrainingSpec,
    seed: int,
    clock: Clock,
    on_progress: Callable[[RunProgress], None],
) -> Run:
    """Return how the strategy did on every machine's holdout set after each machine it learned."""
    rng = np.random.default_rng(seed)
    timed = _Timed(config.strategy, clock)
    config = replace(config, strategy=timed)
    network: Network | None = None
    memory = Memory()
    scores: list[RunScores] = []
    seconds: list[float] = []
    for place, machine in enumerate(fleet.machines):

        def tell(progress: EpochProgress, place: int = place) -> None:
            on_progress(RunProgress(place + 1, len(fleet.machines), progress.epoch, progress.epochs))

        def fit(start: Network | None, new: Samples, replay: Samples | None) -> Network:
            began = clock()
            trained = train(start, new, replay=replay, spec=training, rng=rng, progress=tell)
            seconds.append(clock() - began)
            return trained

        model, memory = update_model(
            machine,
            network=network,
            memory=memory,
            vocabulary=fleet.vocabulary,
            config=config,
            train=fit,
            rng=rng,
        )
        network = model.network
        predicted = [predict(model, holdout.samples) for holdout in holdout_sets]
        scores.append(score_forecasts(holdout_sets, predicted, model.thresholds))
    labels = [task.windows.labels(fleet.vocabulary.target_columns) for task in memory.tasks.values()]
    learned = ResourceUse(
        memory_seconds=timed.seconds,
        training_seconds=seconds,
        kept=np.array([part.sum(axis=0) for part in labels], dtype=np.float64),
        sizes=[len(part) for part in labels],
        divergence=divergence(np.concatenate(labels)),
    )
    return Run.of(name, seed, scores, learned)


@dataclass(eq=False)
class _Timed:
    """A strategy, and how long each of its choices took."""

    strategy: Strategy
    clock: Clock
    seconds: list[float] = field(default_factory=list)

    @property
    def from_scratch(self) -> bool:
        return self.strategy.from_scratch

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        began = self.clock()
        places = self.strategy.select(old, new, size=size, rng=rng)
        self.seconds.append(self.clock() - began)
        return places
