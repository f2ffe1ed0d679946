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
        self.by_code = nn.Parameter(torch.zeros(layers[-1], own[0])) if own else None
        self.drop_inputs = nn.Dropout(dropout.inputs)
        self.drop_hidden = nn.Dropout(dropout.hidden)
        self.drop_history = nn.Dropout(dropout.history)

    def forward(self, inputs: Tensor, history: Tensor | None = None) -> Tensor:
        """Return the logits of a batch; ``history`` is rows by targets by figures."""
        inputs = self.drop_inputs(inputs)
        for layer in self.layers[:-1]:
            inputs = self.drop_hidden(layer(inputs).relu())
        logits: Tensor = self.layers[-1](inputs)
        if history is None or self.by_code is None:
            return logits
        history = self.drop_history(history)
        logits = logits + (history * self.by_code).sum(-1)
        for layer in self.own[:-1]:
            history = layer(history).relu()
        own: Tensor = self.own[-1](history)
        return logits + own.squeeze(-1)


def _linear(widths: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
