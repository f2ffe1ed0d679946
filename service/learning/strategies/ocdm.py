"""Learn arrow, memory: OCDM and its dataset-based variant, balanced among labels and blind to tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from service.learning.ocdm import Labels, keep, keep_in_batches, power_target
from service.learning.strategies.strategy import Indices, TaskBuffer, split_indices


@dataclass(frozen=True)
class Ocdm:
    """One memory for all tasks, as close as greedy removal comes to equal labels (Algorithms 1 to 3).

    ``batch`` windows of the new task, in random order, compete at a time with the memory; None offers the
    whole task at once, which is dataset-based OCDM (Algorithm 5). ``rho`` is the paper's allocation power.
    """

    batch: int | None = 64
    rho: float = 0.0
    from_scratch: bool = False

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        """Offer the new task to the memory of all old ones."""
        order = rng.permutation(len(new)) if self.batch else np.arange(len(new))
        lengths = [len(task.labels) for task in old]
        held = sum(lengths)
        labels = np.concatenate([*(task.labels for task in old), new[order]])
        seen = new.sum(axis=0) + sum(task.frequency for task in old)
        target = power_target(seen, self.rho)
        if self.batch:
            places = keep_in_batches(labels, size, held=held, batch=self.batch, target=target)
        else:
            places = keep(labels, size, target=target)
        *kept, chosen = split_indices(places, [*lengths, len(new)])
        return [*kept, np.sort(order[chosen])]
