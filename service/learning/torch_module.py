"""Learn arrow, training: the paper's perceptron N-512-256-128-L in torch, and the own-history path."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Dropout:
    """Which share of what is hidden from the network in each step of training."""

    hidden: float = 0.5
    inputs: float = 0.0
    history: float = 0.0


class Module(nn.Module):
    """For training what ``forecasting.network.Network`` is for serving; their weights have the same names."""

    def __init__(self, layers: Sequence[int], own: Sequence[int] = (), *, dropout: Dropout) -> None:
        super().__init__()
        self.layers = _linear(layers)
        self.own = _linear(own)
        self.drop_inputs = FastDropout(dropout.inputs)
        self.drop_hidden = FastDropout(dropout.hidden)
        self.drop_history = FastDropout(dropout.history)

    def forward(self, inputs: Tensor, history: Tensor | None = None) -> Tensor:
        """Return the logits of a batch; ``history`` is rows by targets by figures."""
        inputs = self.drop_inputs(inputs)
        for layer in self.layers[:-1]:
            inputs = self.drop_hidden(layer(inputs).relu())
        logits: Tensor = self.layers[-1](inputs)
        if history is None or not self.own:
            return logits
        history = self.drop_history(history)
        for layer in self.own[:-1]:
            history = layer(history).relu()
        own: Tensor = self.own[-1](history)
        return logits + own.squeeze(-1)


class FastDropout(nn.Module):
    """Dropout in 256ths: one random byte an entry, since torch's own draws take a third of a step here."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._hidden = round(share * 256)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inputs with a share of them nought and the rest scaled up, or in use, as they are."""
        if not self.training or not self._hidden:
            return inputs
        words = torch.empty(-(-inputs.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: inputs.numel()].view(inputs.shape) >= self._hidden
        return inputs * (kept * (256 / (256 - self._hidden)))


def _linear(widths: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
