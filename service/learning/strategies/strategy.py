"""Learn arrow, memory: the one small interface that every strategy has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from service.learning.ocdm import Labels

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TaskBuffer:
    """An old task as a strategy sees it: the labels still kept, and what they were chosen from.

    ``offered`` windows were seen of the task, of which ``frequency`` held each label.
    """

    labels: Labels
    offered: int
    frequency: NDArray[np.int64]


class Strategy(Protocol):
    """Chooses which windows stay for replay."""

    @property
    def from_scratch(self) -> bool:
        """Whether each task trains fresh weights on everything kept, instead of replaying beside it."""
        ...

    def select(self, old: Sequence[TaskBuffer], new: Labels, *, size: int, rng: Generator) -> list[Indices]:
        """Return, for each old task and last for the new one, the sorted positions of what stays."""
        ...


def split_indices(places: Indices, lengths: Sequence[int]) -> list[Indices]:
    """Return sorted positions in a concatenation as positions in each of its parts."""
    edges = np.concatenate([[0], np.cumsum(lengths)])
    cuts = np.searchsorted(places, edges)
    return [places[a:b] - edge for a, b, edge in zip(cuts[:-1], cuts[1:], edges[:-1], strict=True)]
