"""Experiment, second step: one strategy learns the fleet machine by machine and is examined after each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator

from forecasting.network import Network
from service.experiment.exam import Exam, Marks, marked
from service.experiment.fleet import Fleet
from service.experiment.results import Run, Upkeep
from service.learning.continual_update import UpdateConfig, predict, update_model
from service.learning.memory import Memory
from service.learning.ocdm import Labels, divergence
from service.learning.strategies import Indices, Strategy, TaskBuffer
from service.learning.torch_trainer import EpochProgress, TrainingSpec, train
from service.learning.windows import Samples

Clock = Callable[[], float]


@dataclass(frozen=True)
class Stage:
    """How far a run is: which machine is being learned, and which epoch of how many."""

    machine: int
    machines: int
    epoch: int
    epochs: int


def run(
    name: str,
    fleet: Fleet,
    papers: Sequence[Exam],
    *,
    config: UpdateConfig,
    training: TrainingSpec,
    seed: int,
    clock: Clock,
    told: Callable[[Stage], None],
) -> Run:
    """Return how the strategy did on every machine's exam after each machine it learned."""
    rng = np.random.default_rng(seed)
    timed = _Timed(config.strategy, clock)
    config = replace(config, strategy=timed)
    network: Network | None = None
    memory = Memory()
    marks: list[Marks] = []
    seconds: list[float] = []
    for place, machine in enumerate(fleet.machines):

        def tell(progress: EpochProgress, place: int = place) -> None:
            told(Stage(place + 1, len(fleet.machines), progress.epoch, progress.epochs))

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
        marks.append(marked(papers, [predict(model, exam.samples) for exam in papers], model.thresholds))
    labels = [task.windows.labels(fleet.vocabulary.target_columns) for task in memory.tasks.values()]
    learned = Upkeep(
        memory_seconds=timed.seconds,
        training_seconds=seconds,
        kept=np.array([part.sum(axis=0) for part in labels], dtype=np.float64),
        sizes=[len(part) for part in labels],
        divergence=divergence(np.concatenate(labels)),
    )
    return Run.of(name, seed, marks, learned)


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
