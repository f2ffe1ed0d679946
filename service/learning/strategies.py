"""The paper's strategies: which windows each of them keeps for replay.

All implement ``Strategy.select``, which gets labels only and returns indices. To add one, write its class and add
it to ``STRATEGIES``; the experiment and the service find it there.

The paper's text, its printed pseudo-code and its published code disagree in places. What is built here is
the intent, with these corrections:

- Algorithm 2 (task update) computes ``diff`` as |M| - M, never positive while there is room; meant is
  M - |M|, and the condition is |M| < M.
- Algorithm 2 fills free places with a random part of a batch; as the rest of that batch then competes with
  it in one Memory Update over all of them, the draw changes nothing and is left out.
- The published code fills free places *with* replacement, so that some windows are held twice and others
  never offered, and drops the rest of the batch in which the memory becomes full. Here every window is
  offered once.
- Algorithm 4 (BAT-OCDM) takes M/(N-1) - M/N before it asks whether N ≥ 2, and so divides by zero at the
  first task; here the first task has all of the memory and there is nothing to shrink.
- Algorithm 5 (dataset-based OCDM) removes min(|Ω| - M, M) samples, too few for a task larger than 2 M, and
  adds to Ω a new task that is already in it; here it removes what is too much, |Ω| - M, from memory and task.
- The published code's target distribution is never initialised, and is summed for each sample where it
  should be for each label. Here p_i ∝ n_i^rho over the labels seen, uniform for rho = 0.
- The published code's list of which task each of OCDM's windows came from is not shortened with the windows,
  so that its figure of tasks in memory drifts from what is kept; here a window stays with its task.
- M/T rarely divides and ``round(M/T)`` each does not sum to M; ``shares`` does.
- The published task-based random memory draws with replacement, again at every shrinking; here without.
- The published reservoir lets in M + 1 windows before it starts to replace; here M.
- The macro F1 s = Σ f_1 lacks its 1/L (``metrics.macro``).
- F_T divides by s_lj, which may be zero; of a score of zero nothing is forgotten
  (``metrics.forgetting``). Nor does it lie in [-1, 1] as stated: a score that more than doubles goes below.
- "Finetune" is described as training from scratch on each task, but measured, and named, as training on
  from the last weights, which is what is done here.
- Cumulative has no limit of memory and starts from fresh weights at every task, as described.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from service.learning.ocdm import Labels, keep, keep_in_batches, power_target


def allocate(size: int, available: Sequence[int]) -> list[int]:
    """Share ``size`` places among tasks that have ``available`` windows each, oldest task first.

    Everybody gets the same number, except that a task with fewer windows gives its rest away, and the
    remainder of the division goes one by one to the oldest tasks: as tasks are added, the places of an old
    task then only ever shrink, so that it never needs back what it has dropped.
    """
    if size < sum(count > 0 for count in available):
        raise ValueError(f"A memory of {size} windows cannot keep one of each of {len(available)} machines.")
    given = [0] * len(available)
    open_tasks = [place for place, count in enumerate(available) if count > 0]
    while open_tasks:
        free = size - sum(given)
        equal = free // len(open_tasks)
        small = [place for place in open_tasks if available[place] <= equal]
        if not small:
            for rank, place in enumerate(open_tasks):
                given[place] = equal + (rank < free % len(open_tasks))
            break
        for place in small:
            given[place] = available[place]
        open_tasks = [place for place in open_tasks if available[place] > equal]
    return given


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


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "finetune": Finetune(),
    "cumulative": Cumulative(),
    "task-random": TaskRandom(),
    "reservoir": Reservoir(),
    "ocdm": Ocdm(),
    "dataset-ocdm": Ocdm(batch=None),
    "bat-ocdm": BatOcdm(),
}
