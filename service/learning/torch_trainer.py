"""Learn arrow, training: new windows and replayed ones, half and half, become new weights.

Seeded by the generator passed in and run on one thread, so the same samples give the same bits. Batches are
drawn by index from tensors that are built once; a loader of single samples would cost more than the steps.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import torch
from numpy.random import Generator
from torch import Tensor

from forecasting.network import Network
from service.learning.interpolation import widen
from service.learning.samples import Samples, concat
from service.learning.torch_loss import cross_entropy, focal_loss
from service.learning.torch_module import Dropout, Module
from service.learning.torch_optimiser import Adam
from service.learning.torch_weights import to_module, to_network


@dataclass(frozen=True)
class TrainingSpec:
    """How to train; the paper's way by default.

    ``own_hidden`` are the widths of the own-history path, used when samples carry history. Fresh weights go
    through their windows more often than ``epochs``, until there were ``first_steps``; learned ones do not,
    because a machine with few windows would bend the whole fleet's model to itself.
    """

    hidden: tuple[int, ...] = (512, 256, 128)
    own_hidden: tuple[int, ...] = (64, 32)
    dropout: Dropout = field(default_factory=Dropout)
    epochs: int = 10
    batch: int = 64
    replay_batch: int = 64
    learning_rate: float = 1e-3
    first_steps: int = 0
    loss: Literal["focal", "cross-entropy"] = "focal"
    alpha: float = 0.8
    gamma: float = 2.0


@dataclass(frozen=True)
class Progress:
    """How far training is, told after every epoch; ``loss`` is that epoch's mean."""

    epoch: int
    epochs: int
    loss: float


def no_progress(progress: Progress) -> None:
    """Tell nobody."""


def train(
    network: Network | None,
    new: Samples,
    *,
    replay: Samples | None = None,
    spec: TrainingSpec,
    rng: Generator,
    progress: Callable[[Progress], None] = no_progress,
) -> Network:
    """Return the weights after learning ``new``, starting from ``network`` or, with None, from fresh ones.

    Each step takes a batch of new samples and, if there is something to replay, as fixed a number of replayed
    ones, drawn with replacement. A network with fewer columns than the samples grows first. ``progress`` may
    raise to stop training.
    """
    if len(new) == 0:
        raise ValueError("There is nothing to learn from: no windows were given.")
    with _reproducibly(int(rng.integers(2**63))):
        module = _module(network, new, spec)
        batches = _Batches(new, replay, spec)
        least = spec.first_steps if network is None else 0
        _fit(module, batches, spec, progress, epochs=max(spec.epochs, -(-least // batches.rounds)))
        return to_network(module)


def _module(network: Network | None, new: Samples, spec: TrainingSpec) -> Module:
    inputs, outputs = new.inputs.shape[1], new.labels.shape[1]
    if network is None:
        figures = 0 if new.history is None else new.history.shape[2]
        own = (figures, *spec.own_hidden, 1) if figures else ()
        return Module((inputs, *spec.hidden, outputs), own, dropout=spec.dropout)
    if bool(network.own) != (new.history is not None):
        raise ValueError("A network that reads own history learns from samples that carry it, and only such.")
    return to_module(widen(network, inputs=inputs, outputs=outputs), dropout=spec.dropout)


def _fit(
    module: Module,
    batches: "_Batches",
    spec: TrainingSpec,
    progress: Callable[[Progress], None],
    *,
    epochs: int,
) -> None:
    optimiser = Adam(module.parameters(), rate=spec.learning_rate)
    module.train()
    for epoch in range(1, epochs + 1):
        total = torch.zeros(())
        for inputs, history, labels, weights in batches.epoch():
            logits = module(inputs, history)
            if spec.loss == "focal":
                losses = focal_loss(logits, labels, alpha=spec.alpha, gamma=spec.gamma)
            else:
                losses = cross_entropy(logits, labels)
            loss = (losses if weights is None else losses * weights).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.detach()
        progress(Progress(epoch, epochs, float(total) / batches.rounds))


class _Batches:
    """New and replayed samples in one table, new ones first, from which every batch is one gather."""

    def __init__(self, new: Samples, replay: Samples | None, spec: TrainingSpec) -> None:
        both = new if replay is None or len(replay) == 0 else concat([new, replay])
        self._inputs = torch.from_numpy(both.inputs)
        self._history = None if both.history is None else torch.from_numpy(both.history)
        self._labels = torch.from_numpy(both.labels).float()
        self._weights = None if both.weights is None else torch.from_numpy(both.weights)
        self._new, self._replayed = len(new), len(both) - len(new)
        self._batch, self._replay_batch = spec.batch, spec.replay_batch if self._replayed else 0
        self.rounds = -(-self._new // self._batch)

    def epoch(self) -> Iterator[tuple[Tensor, Tensor | None, Tensor, Tensor | None]]:
        """Yield inputs, history, labels and weights of batches in which every new sample comes once."""
        order = torch.randperm(self._new)
        drawn = self._new + torch.randint(max(self._replayed, 1), (self.rounds, self._replay_batch))
        for place, new in enumerate(torch.split(order, self._batch)):
            rows = torch.cat([new, drawn[place]])
            history = None if self._history is None else self._history[rows]
            weights = None if self._weights is None else self._weights[rows]
            yield self._inputs[rows], history, self._labels[rows], weights


@contextmanager
def _reproducibly(seed: int) -> Iterator[None]:
    """Run on one thread with a seed of our own, and leave torch's global state as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
