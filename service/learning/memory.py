"""The replay memory: windows of every machine, M of them in all."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from forecasting.vocabulary import Columns
from service.learning.strategies import Strategy, TaskBuffer, allocate
from service.learning.windows import WindowSet


@dataclass(frozen=True, eq=False)
class TaskMemory:
    """What is kept of one machine, and how its windows were before most of them were dropped.

    ``windows`` are replayed. ``held_out`` were never learned from, so that probabilities can be checked
    against them. ``offered`` counts the windows chosen from, ``frequency`` in how many of them each code
    came: a balanced choice hides how rare its labels are.
    """

    windows: WindowSet
    held_out: WindowSet
    offered: int
    frequency: Mapping[int, int]

    def weights(self, targets: Columns, *, power: float) -> NDArray[np.float32]:
        """Return how much each label of each replayed window counts, so that balance does not bend chances.

        A label that came in a share p of all windows and in a share q of those kept counts p / q where it came
        and (1 - p) / (1 - q) where it did not, to ``power``: 0 leaves the memory's balance, 1 undoes it.
        """
        labels = self.windows.labels(targets)
        kept = labels.mean(axis=0)
        before = _frequencies(self.frequency, targets) / self.offered
        with np.errstate(divide="ignore", invalid="ignore"):  # a share of zero has no window to weigh
            weights = np.where(labels, before / kept, (1 - before) / (1 - kept)) ** power
        return np.asarray(weights, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Memory:
    """The memories of all machines learned so far, oldest first."""

    tasks: Mapping[str, TaskMemory] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(task.windows) + len(task.held_out) for task in self.tasks.values())

    def without(self, task: str) -> "Memory":
        """Return the memory after a machine has been retired or erased; its share is free for the next."""
        return Memory({name: kept for name, kept in self.tasks.items() if name != task})

    def update(
        self, task: str, windows: WindowSet, *, size: int, strategy: Strategy, targets: Columns, rng: Generator
    ) -> "Memory":
        """Return the memory after learning a task, at most ``size`` windows in all.

        A task that is already there is learned anew: its old windows go, and it becomes the newest.
        """
        old = self.without(task).tasks
        labels = windows.labels(targets)
        kept = [
            TaskBuffer(memory.windows.labels(targets), memory.offered, _frequencies(memory.frequency, targets))
            for memory in old.values()
        ]
        places = strategy.select(kept, labels, size=size, rng=rng)
        if len(places) != len(kept) + 1:
            raise ValueError("A strategy must say for every task which windows stay.")
        tasks = {
            name: replace(memory, windows=memory.windows.take(place))
            for (name, memory), place in zip(old.items(), places[:-1], strict=True)
        }
        frequency = zip(windows.codes.tolist(), windows.outcomes.sum(axis=0).tolist(), strict=True)
        tasks[task] = TaskMemory(
            windows=windows.take(places[-1]),
            held_out=windows.take(range(0)),
            offered=len(windows),
            frequency={code: count for code, count in frequency if count},
        )
        return Memory(tasks)

    def with_holdout(self, task: str, windows: WindowSet, *, size: int, rng: Generator) -> "Memory":
        """Return the memory with windows of a learned task held out, at most ``size`` in all, at random.

        Every task has the same share, and a share only ever shrinks, so it stays a fair draw of its task.
        """
        held = {name: memory.held_out for name, memory in self.tasks.items()} | {task: windows}
        given = allocate(size, [len(part) for part in held.values()]) if size else [0] * len(held)
        drawn = {
            name: part.take(np.sort(rng.choice(len(part), share, replace=False)))
            for (name, part), share in zip(held.items(), given, strict=True)
        }
        return Memory({name: replace(memory, held_out=drawn[name]) for name, memory in self.tasks.items()})


def _frequencies(frequency: Mapping[int, int], targets: Columns) -> NDArray[np.int64]:
    codes = np.array(list(frequency), dtype=np.int64)
    counts = np.zeros(targets.size + 1, dtype=np.int64)
    counts[targets.index(codes)] = list(frequency.values())
    return counts[:-1]
