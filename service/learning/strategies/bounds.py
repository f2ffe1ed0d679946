"""Learn arrow, memory: the two bounds between which replay lives, remembering nothing and everything."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from service.learning.ocdm import Labels
from service.learning.strategies.strategy import Indices, TaskBuffer


@dataclass(frozen=True)
class Finetune:
    """The lower bound: train on with the new task alone."""

    from_scratch: bool = False

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        """Keep nothing."""
        del new, size, rng
        return [np.arange(0) for _ in range(len(old) + 1)]


@dataclass(frozen=True)
class Cumulative:
    """The upper bound: train from scratch on all windows of all tasks so far."""

    from_scratch: bool = True

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        """Keep everything, whatever the size of the memory."""
        del size, rng
        return [np.arange(len(task.labels)) for task in old] + [np.arange(len(new))]
