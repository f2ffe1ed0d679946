"""Learn arrow, memory: the two strategies that do not look at labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from service.learning.ocdm import Labels
from service.learning.quotas import allocate
from service.learning.strategies.strategy import Indices, TaskBuffer, split_indices


@dataclass(frozen=True)
class TaskRandom:
    """An equal number of windows of each task, at random."""

    from_scratch: bool = False

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        """Keep each task's share, drawn without replacement from what is still there of it."""
        available = [len(task.labels) for task in old] + [len(new)]
        given = allocate(size, available)
        sizes = zip(available, given, strict=True)
        return [np.sort(rng.choice(count, share, replace=False)) for count, share in sizes]


@dataclass(frozen=True)
class Reservoir:
    """Every window ever offered has the same chance to be kept, so large tasks have more of the memory."""

    from_scratch: bool = False

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        """Run Vitter's algorithm R over the new windows, after all those offered before."""
        lengths = [len(task.labels) for task in old]
        seen = sum(task.offered for task in old)
        slots = list(range(sum(lengths)))
        candidates = range(len(slots), len(slots) + len(new))
        draws = rng.integers(0, seen + 1 + np.arange(len(new)))
        for candidate, draw in zip(candidates, draws.tolist(), strict=True):
            if len(slots) < size:
                slots.append(candidate)
            elif draw < size:
                slots[draw] = candidate
        return split_indices(np.sort(np.array(slots, dtype=np.intp)), [*lengths, len(new)])
