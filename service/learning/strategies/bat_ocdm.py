"""Learn arrow, memory: BAT-OCDM, balanced among tasks by shares and among labels inside each share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from service.learning.ocdm import Labels, keep, keep_in_batches, power_target
from service.learning.quotas import allocate
from service.learning.strategies.strategy import Indices, TaskBuffer


@dataclass(frozen=True)
class BatOcdm:
    """A memory for each task (Algorithm 4): step 1 chooses from the new task, step 2 shrinks the old ones.

    ``batch`` windows of the new task compete at a time, as the paper streams them; None lets the whole
    task compete at once, which comes closer to the target. Windows are offered in random order, so that
    among equal label sets chance decides and not age: the greedy removes the earliest offered first.
    """

    batch: int | None = 64
    rho: float = 0.0
    from_scratch: bool = False

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        """Give every task its share of the memory."""
        *smaller, share = allocate(size, [len(task.labels) for task in old] + [len(new)])
        return [
            *(
                self._chosen(task.labels, task.frequency, places, rng, batch=None)
                for task, places in zip(old, smaller, strict=True)
            ),
            self._chosen(new, new.sum(axis=0), share, rng, batch=self.batch),
        ]

    def _chosen(
        self, labels: Labels, frequency: NDArray[np.int64], size: int, rng: Generator, *, batch: int | None
    ) -> Indices:
        order = rng.permutation(len(labels))
        target = power_target(frequency, self.rho)
        if batch:
            places = keep_in_batches(labels[order], size, batch=batch, target=target)
        else:
            places = keep(labels[order], size, target=target)
        return np.sort(order[places])
