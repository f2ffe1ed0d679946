"""Train the network with torch: new windows and replayed ones, half and half, become new weights.

Seeded by the given generator and run on one thread, so the same samples give the same bits. Only the training
process imports this module.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, cast

import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.adam import adam

from forecasting.encoding import Bins, Encoding
from forecasting.history import HistorySpec
from forecasting.network import Layer, Network
from service.learning.continual_update import widen
from service.learning.windows import FAR, MAIN, NEAR, Samples, concat_samples


@dataclass(frozen=True)
class Dropout:
    """Which share of what is hidden from the network in each step of training."""

    hidden: float = 0.5
    inputs: float = 0.0
    history: float = 0.0


class Module(nn.Module):
    """For training what ``forecasting.network.Network`` is for serving; their weights have the same names."""

    def __init__(
        self,
        layers: Sequence[int],
        own: Sequence[int] = (),
        *,
        dropout: Dropout,
        encoding: Encoding | None = None,
    ) -> None:
        super().__init__()
        self.layers = _linear(layers)
        self.own = _linear(own)
        if own and own[-1] > 1:
            self.link = nn.Parameter(torch.zeros(own[-1] - 1))
        self.encoding = encoding
        self._bins = [] if encoding is None else [_tensors(encoding.code_bins), _tensors(encoding.machine_bins)]
        self.drop_inputs = FastDropout(dropout.inputs)
        self.drop_hidden = FastDropout(dropout.hidden)
        self.drop_history = FastDropout(dropout.history)

    def forward(self, inputs: Tensor, history: Tensor | None = None) -> Tensor:
        """Return the logits of a batch, as ``Network.horizon_logits`` does.

        The main logit learns nothing from the losses of the two others through their link to it.
        """
        inputs = self.drop_inputs(inputs)
        for layer in self.layers[:-1]:
            inputs = self.drop_hidden(layer(inputs).relu())
        logits: Tensor = self.layers[-1](inputs)
        if history is None or not self.own:
            return logits.unsqueeze(-1)
        hidden = self._first_own(history)
        for layer in self.own[1:]:
            hidden = layer(hidden.relu())
        main = hidden[..., :1] + logits.unsqueeze(-1)
        if hidden.shape[-1] == 1:
            return main
        return torch.cat([main, hidden[..., 1:] + self.link * main.detach()], dim=-1)

    def _first_own(self, history: Tensor) -> Tensor:
        """Return what the first layer of the own path makes of the history."""
        first = cast("nn.Linear", self.own[0])
        if self.encoding is None:
            whole: Tensor = first(self.drop_history(history))
            return whole
        own = self.encoding.own
        codes = self.drop_history(_binned(history[..., :own], *self._bins[0]))
        machine = self.drop_history(_binned(history[:, :1, own:], *self._bins[1]))
        width = codes.shape[-1]
        shared = functional.linear(machine, first.weight[:, width:], first.bias)
        return functional.linear(codes, first.weight[:, :width]) + shared


class FastDropout(nn.Module):
    """Dropout in 256ths: one random byte an entry, since torch's own draws take a third of a step here."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._hidden = round(share * 256)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inputs with a share of them zero and the rest scaled up, or in use, as they are."""
        if not self.training or not self._hidden:
            return inputs
        words = torch.empty(-(-inputs.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: inputs.numel()].view(inputs.shape) >= self._hidden
        return inputs * (kept * (256 / (256 - self._hidden)))


def _tensors(bins: Bins) -> tuple[Tensor, Tensor, Tensor]:
    return torch.from_numpy(bins.columns), torch.from_numpy(bins.start), torch.from_numpy(bins.slope)


def _binned(figures: Tensor, columns: Tensor, start: Tensor, slope: Tensor) -> Tensor:
    """Return the figures and their bins, as ``forecasting.encoding.Bins`` does."""
    return torch.cat([figures, ((figures[..., columns] - start) * slope).clamp(0, 1)], dim=-1)


def _linear(widths: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))


def focal_loss(logits: Tensor, labels: Tensor, *, alpha: float, gamma: float) -> Tensor:
    """Return each label's weighted focal loss: alpha weighs positives, gamma plays down what is already sure.

    In the paper's symbols -alpha (1-p)^gamma y log p - (1-alpha) p^gamma (1-y) log(1-p), on logits: log p
    and log(1-p) come from log-sigmoid, so that neither is ever infinite, nor their gradients.
    """
    log_yes, log_no = functional.logsigmoid(logits), functional.logsigmoid(-logits)
    positive = alpha * (gamma * log_no).exp() * log_yes
    negative = (1 - alpha) * (gamma * log_yes).exp() * log_no
    return -(labels * positive + (1 - labels) * negative)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each label's log loss, whose probabilities need little correction."""
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def conditional_loss(logits: Tensor, within: Tensor) -> Tensor:
    """Return the mean log loss of the near and far logits, each where its condition holds.

    Near: of the codes that came within the main horizon. Far: of those that did not, where it is known.
    """
    near = cross_entropy(logits[..., 1], (within == NEAR).float())
    far = cross_entropy(logits[..., 2], (within == FAR).float())
    came = (within == MAIN) | (within == NEAR)
    return (near * came + far * (within <= FAR)).mean()


_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Moves parameters by their gradients, at a rate of its own for each."""

    def __init__(self, parameters: Iterable[Tensor], *, rate: float) -> None:
        self._parameters, self._rate = list(parameters), rate
        self._means = [torch.zeros_like(one) for one in self._parameters]
        self._squares = [torch.zeros_like(one) for one in self._parameters]
        self._steps = [torch.zeros(()) for _ in self._parameters]

    def zero_grad(self) -> None:
        """Begin the next step."""
        for one in self._parameters:
            one.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter; each must have a gradient."""
        gradients = [one.grad for one in self._parameters if one.grad is not None]
        adam(
            self._parameters,
            gradients,
            self._means,
            self._squares,
            [],
            self._steps,
            fused=True,
            beta1=_BETA1,
            beta2=_BETA2,
            lr=self._rate,
            eps=_EPSILON,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )


def to_network(module: Module) -> Network:
    """Return a copy of the module's weights as the network that serves."""
    arrays = {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}
    return Network.from_arrays(arrays, module.encoding)


def to_module(network: Network, *, dropout: Dropout) -> Module:
    """Return a module that starts from the network's weights."""
    module = Module(_widths(network.layers), _widths(network.own), dropout=dropout, encoding=network.encoding)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in network.arrays().items()})
    return module


def _widths(layers: tuple[Layer, ...]) -> list[int]:
    return [layer.weight.shape[1] for layer in layers] + [layer.weight.shape[0] for layer in layers[-1:]]


@dataclass(frozen=True)
class TrainingSpec:
    """How to train; the paper's way by default.

    ``own_hidden`` are the widths of the own-history path, used when samples carry history; ``encoded`` says
    whether it reads the history in bins, and forecasts three horizons. Fresh weights go through their windows
    more often than ``epochs``, until there were ``first_steps``; learned ones do not, because a machine with few
    windows would bend the whole fleet's model to itself.
    """

    hidden: tuple[int, ...] = (512, 256, 128)
    own_hidden: tuple[int, ...] = (64, 32)
    encoded: bool = False
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
class EpochProgress:
    """How far training is, told after every epoch; ``loss`` is that epoch's mean."""

    epoch: int
    epochs: int
    loss: float


def no_progress(progress: EpochProgress) -> None:
    """Tell nobody."""


def train(
    network: Network | None,
    new: Samples,
    *,
    replay: Samples | None = None,
    spec: TrainingSpec,
    rng: Generator,
    progress: Callable[[EpochProgress], None] = no_progress,
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
        encoding = Encoding.build(HistorySpec()) if figures and spec.encoded else None
        horizons = 3 if encoding and new.within is not None else 1
        own = (encoding.width if encoding else figures, *spec.own_hidden, horizons) if figures else ()
        return Module((inputs, *spec.hidden, outputs), own, dropout=spec.dropout, encoding=encoding)
    if bool(network.own) != (new.history is not None):
        raise ValueError("A network that reads own history learns from samples that carry it, and only such.")
    return to_module(widen(network, inputs=inputs, outputs=outputs), dropout=spec.dropout)


def _fit(
    module: Module,
    batches: "_Batches",
    spec: TrainingSpec,
    progress: Callable[[EpochProgress], None],
    *,
    epochs: int,
) -> None:
    optimiser = Adam(module.parameters(), rate=spec.learning_rate)
    module.train()
    for epoch in range(1, epochs + 1):
        total = torch.zeros(())
        for inputs, history, labels, weights, within in batches.epoch():
            by_horizon = module(inputs, history)
            logits = by_horizon[..., 0]
            if spec.loss == "focal":
                losses = focal_loss(logits, labels, alpha=spec.alpha, gamma=spec.gamma)
            else:
                losses = cross_entropy(logits, labels)
            loss = (losses if weights is None else losses * weights).mean()
            if within is not None and by_horizon.shape[-1] > 1:
                loss = loss + conditional_loss(by_horizon, within)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.detach()
        progress(EpochProgress(epoch, epochs, float(total) / batches.rounds))


class _Batches:
    """New and replayed samples in one table, new ones first, from which every batch is one gather."""

    def __init__(self, new: Samples, replay: Samples | None, spec: TrainingSpec) -> None:
        both = new if replay is None or len(replay) == 0 else concat_samples([new, replay])
        self._inputs = torch.from_numpy(both.inputs)
        self._history = None if both.history is None else torch.from_numpy(both.history)
        self._labels = torch.from_numpy(both.labels).float()
        self._weights = None if both.weights is None else torch.from_numpy(both.weights)
        self._within = None if both.within is None else torch.from_numpy(both.within)
        self._new, self._replayed = len(new), len(both) - len(new)
        self._batch, self._replay_batch = spec.batch, spec.replay_batch if self._replayed else 0
        self.rounds = -(-self._new // self._batch)

    def epoch(self) -> Iterator[tuple[Tensor, Tensor | None, Tensor, Tensor | None, Tensor | None]]:
        """Yield inputs, history, labels, weights and horizons of batches in which every new sample comes once."""
        order = torch.randperm(self._new)
        drawn = self._new + torch.randint(max(self._replayed, 1), (self.rounds, self._replay_batch))
        for place, new in enumerate(torch.split(order, self._batch)):
            rows = torch.cat([new, drawn[place]])
            history = None if self._history is None else self._history[rows].float()
            weights = None if self._weights is None else self._weights[rows]
            within = None if self._within is None else self._within[rows]
            yield self._inputs[rows], history, self._labels[rows], weights, within


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
