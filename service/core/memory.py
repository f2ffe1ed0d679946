"""Learn arrow, memory: the windows of every machine that replay keeps, by code, M of them in all."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from forecasting.vocabulary import Columns
from service.core.strategies.strategy import Kept, Strategy
from service.core.windows import Windows


@dataclass(frozen=True, eq=False)
class TaskMemory:
    """What is kept of one machine, and how its windows were before most of them were dropped.

    ``offered`` counts the windows it was chosen from and ``frequency`` in how many of them each code came:
    a balanced choice hides how rare its labels are, and calibration must know.
    """

    windows: Windows
    offered: int
    frequency: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class Memory:
    """The memories of all machines learned so far, oldest first."""

    tasks: Mapping[str, TaskMemory] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(task.windows) for task in self.tasks.values())

    def without(self, task: str) -> "Memory":
        """Return the memory after a machine has been retired or erased; its share is free for the next."""
        return Memory({name: kept for name, kept in self.tasks.items() if name != task})

    def updated(
        self, task: str, windows: Windows, *, size: int, strategy: Strategy, targets: Columns, rng: Generator
    ) -> "Memory":
        """Return the memory after learning a task, at most ``size`` windows in all.

        A task that is already there is learned anew: its old windows go, and it becomes the newest.
        """
        old = self.without(task).tasks
        labels = windows.labels(targets)
        kept = [
            Kept(memory.windows.labels(targets), memory.offered, _frequencies(memory.frequency, targets))
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
            offered=len(windows),
            frequency={code: count for code, count in frequency if count},
        )
        return Memory(tasks)


def _frequencies(frequency: Mapping[int, int], targets: Columns) -> NDArray[np.int64]:
    codes = np.array(list(frequency), dtype=np.int64)
    counts = np.zeros(targets.size + 1, dtype=np.int64)
    counts[targets.of(codes)] = list(frequency.values())
    return counts[:-1]
