"""BAT-OCDM's memory updates over the paper's fourteen tasks: against its pseudo-code, read literally.

The literal reading loops in Python over every candidate of every removal and takes one numpy KL for each, as the
authors' code does. It is timed on some removals in between our runs, and scaled by the exact number of
divergences that the whole stream of tasks takes; that both keep the same samples is checked on a smaller stream.
"""

import time
import tracemalloc

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.report import ROUNDS, Figure, run
from service.learning.ocdm import Labels, keep, keep_in_batches
from service.learning.strategies import BatOcdm, TaskBuffer, allocate

TASKS = (2600, 5380, 5430, 2580, 3730, 1290, 4130, 2390, 1610, 2010, 920, 2090, 4310, 960)
MEMORY, LABELS, BATCH = 2000, 15, 64
# How often each label comes, from the rarest to the commonest, about as in the paper's figure.
_RATES = np.array([0.01, 0.01, 0.02, 0.02, 0.03, 0.05, 0.1, 0.12, 0.15, 0.2, 0.25, 0.4, 0.45, 0.5, 0.6])
_STRETCH = 8  # windows an hour apart share most of their horizon, so a label set lasts


def drawn(samples: int, rng: Generator) -> Labels:
    """Return the label sets of one task, in time order.

    A machine has its taste in labels, a bad day has many of them, and neighbouring windows are alike: some
    60 to 250 distinct sets a task, where the real machines of this field have 27 to 178.
    """
    taste = rng.normal(0.0, 1.0, LABELS)
    stretches = samples // _STRETCH + 1
    logits = 1.6 * (np.log(_RATES / (1 - _RATES)) + taste) + rng.normal(0.0, 0.7, (stretches, 1))
    sets = rng.random((stretches, LABELS)) < 1 / (1 + np.exp(-logits))
    return np.asarray(np.repeat(sets, _STRETCH, axis=0)[:samples])


def updating(tasks: list[Labels]) -> float:
    """Return the seconds of all memory updates of a stream of tasks."""
    strategy, rng, kept = BatOcdm(batch=BATCH), np.random.default_rng(0), list[TaskBuffer]()
    started = time.perf_counter()
    for labels in tasks:
        places = strategy.select(kept, labels, size=MEMORY, rng=rng)
        offered = [*kept, TaskBuffer(labels, len(labels), labels.sum(axis=0))]
        kept = [
            TaskBuffer(task.labels[place], task.offered, task.frequency)
            for task, place in zip(offered, places, strict=True)
        ]
    return time.perf_counter() - started


def literally(labels: Labels, remove: int) -> list[int]:
    """Remove samples as the pseudo-code says, and return what is left; ties go to the lowest index."""
    left, target = list(range(len(labels))), np.full(labels.shape[1], 1 / labels.shape[1])
    counts = labels.sum(axis=0).astype(np.float64)
    for _ in range(remove):
        scores = [_divergence(counts - labels[index], target) for index in left]
        best = min(scores)
        place = next(place for place, score in enumerate(scores) if score <= best + 1e-11)
        counts -= labels[left.pop(place)]
    return left


def _divergence(counts: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    present = counts > 0
    share = counts[present] / counts.sum()
    return float(np.sum(share * np.log(share / target[present])))


def divergences() -> int:
    """Return how many divergences the literal reading takes over all tasks, counted removal by removal."""
    total, sizes = 0, list[int]()
    for samples in TASKS:
        given = allocate(MEMORY, [*sizes, samples])
        held = 0
        for start in range(0, samples, BATCH):
            held += min(BATCH, samples - start)
            while held > given[-1]:
                total, held = total + held, held - 1
        total += sum(sum(range(after + 1, before + 1)) for before, after in zip(sizes, given[:-1], strict=True))
        sizes = given
    return total


def measure(rounds: int) -> list[Figure]:
    """Measure both in turns."""
    rng = np.random.default_rng(7)
    tasks = [drawn(samples, rng) for samples in TASKS]
    _insist_on_equal_results(rng)
    pool, removals = tasks[1][: MEMORY + BATCH], 2
    limits, ours = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        literally(pool, removals)
        each = (time.perf_counter() - started) / sum(len(pool) - gone for gone in range(removals))
        limits.append(1 / (each * divergences()))
        ours.append(1 / updating(tasks))
    name = "memory update of BAT-OCDM, the paper's 14 tasks, M = 2000"
    return [Figure(name, "the paper's pseudo-code, read literally", "runs/s", limits, ours, 1000)]


def _insist_on_equal_results(rng: Generator) -> None:
    labels = drawn(160, rng)
    if keep(labels, 60).tolist() != literally(labels, 100):
        raise RuntimeError("the fast memory update does not keep what the pseudo-code keeps")


def growth(rng: Generator) -> Table:
    """Show how the time grows with samples and memory."""
    laid = Table("samples", "memory", "seconds", "µs a sample", title="How it grows", title_justify="left")
    for samples, memory in ((1000, 500), (10_000, 500), (100_000, 500), (20_000, 1000), (20_000, 4000)):
        labels = drawn(samples, rng)
        started = time.perf_counter()
        keep_in_batches(labels, memory, batch=BATCH)
        seconds = time.perf_counter() - started
        laid.add_row(f"{samples:,}", f"{memory:,}", f"{seconds:.3f}", f"{seconds / samples * 1e6:.1f}")
    labels = drawn(100_000, rng)
    tracemalloc.start()
    keep_in_batches(labels, MEMORY, batch=BATCH)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    laid.caption = f"Peak memory at 100,000 samples: {peak:.0f} MB beside the labels themselves."
    return laid


if __name__ == "__main__":
    run(__doc__, measure, rounds=ROUNDS)
    Console().print(growth(np.random.default_rng(7)))
