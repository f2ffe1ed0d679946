"""Training with indexed tensors and fused Adam: against the same loop with a DataLoader and plain Adam.

The second figure holds a whole epoch against as many steps on one fixed batch: what drawing batches costs.
All on one thread, because two gain little alone and collapse when anything else runs.
"""

import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from benchmarks.report import Figure, run
from service.learning.torch_trainer import Module, TrainingSpec, focal_loss, train
from service.learning.windows import Samples

NEW, REPLAYED, INPUTS, TARGETS = 6000, 2000, 154, 15
SPEC = TrainingSpec(epochs=2)


def drawn(rows: int, rng: np.random.Generator) -> Samples:
    """Return windows like the paper's: a few codes each, shares of all alarms, a fifth of the labels on."""
    counts = rng.poisson(0.15, (rows, INPUTS)).astype(np.float32)
    inputs = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return Samples(inputs, rng.random((rows, TARGETS)) < 0.2)


def ours(new: Samples, replay: Samples) -> float:
    """Return the seconds of an epoch, the faster of two, so that warming up does not count."""
    marks = [time.perf_counter()]
    train(None, new, replay=replay, spec=SPEC, rng=np.random.default_rng(0),
          progress=lambda _made: marks.append(time.perf_counter()))  # fmt: skip
    return min(later - earlier for earlier, later in pairwise(marks))


def with_loaders(new: Samples, replay: Samples) -> float:
    """Return the seconds of an epoch of the usual loop."""
    fresh, old = (
        TensorDataset(torch.from_numpy(s.inputs), torch.from_numpy(s.labels).float()) for s in (new, replay)
    )
    loader = DataLoader(fresh, batch_size=SPEC.batch, shuffle=True)
    again = DataLoader(old, batch_size=SPEC.replay_batch, sampler=RandomSampler(old, replacement=True))
    module = _module()
    optimiser = Adam(module.parameters(), lr=SPEC.learning_rate)
    started = time.perf_counter()
    replayed = _forever(again)
    for inputs, labels in loader:
        old_inputs, old_labels = next(replayed)
        _step(module, optimiser, torch.cat([inputs, old_inputs]), torch.cat([labels, old_labels]))
    return time.perf_counter() - started


def one_batch(new: Samples) -> float:
    """Return the seconds of as many steps on a single batch that is never drawn again."""
    rows = SPEC.batch + SPEC.replay_batch
    inputs, labels = torch.from_numpy(new.inputs[:rows]), torch.from_numpy(new.labels[:rows]).float()
    module = _module()
    optimiser = Adam(module.parameters(), lr=SPEC.learning_rate, fused=True)
    started = time.perf_counter()
    for _ in range(-(-NEW // SPEC.batch)):
        _step(module, optimiser, inputs, labels)
    return time.perf_counter() - started


def measure(rounds: int) -> list[Figure]:
    """Measure all three, taking turns."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(3)
    new, replay = drawn(NEW, rng), drawn(REPLAYED, rng)
    loaders, steps, epochs = [], [], []
    for _ in range(rounds):
        # Of each the faster of two, because ours trains two epochs and the first one warms up.
        loaders.append(min(with_loaders(new, replay) for _ in range(2)))
        steps.append(min(one_batch(new) for _ in range(2)))
        epochs.append(ours(new, replay))
    windows = NEW + REPLAYED
    return [
        Figure("training", "a DataLoader and plain Adam", "windows/s",
               [windows / seconds for seconds in loaders], [windows / seconds for seconds in epochs], 1.5),
        Figure("an epoch", "its steps on one fixed batch", "s", steps, epochs, 1.3, at_most=True),
    ]  # fmt: skip


def _module() -> Module:
    module = Module((INPUTS, *SPEC.hidden, TARGETS), (), dropout=SPEC.dropout)
    module.train()
    return module


def _step(module: Module, optimiser: Adam, inputs: Tensor, labels: Tensor) -> None:
    loss = focal_loss(module(inputs, None), labels, alpha=SPEC.alpha, gamma=SPEC.gamma).mean()
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def _forever(loader: DataLoader[tuple[Tensor, ...]]) -> Iterator[tuple[Tensor, ...]]:
    while True:
        yield from loader


if __name__ == "__main__":
    run(__doc__, measure, rounds=5)
