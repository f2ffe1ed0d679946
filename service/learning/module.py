"""Learn arrow, training: the paper's perceptron N-512-256-128-L in torch, and the own-history path."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn


class Module(nn.Module):
    """For training what ``forecasting.network.Network`` is for serving; their weights have the same names."""

    def __init__(self, layers: Sequence[int], own: Sequence[int] = (), *, dropout: float) -> None:
        super().__init__()
        self.layers = _linear(layers)
        self.own = _linear(own)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, history: Tensor | None = None) -> Tensor:
        """Return the logits of a batch; ``history`` is rows by targets by figures."""
        for layer in self.layers[:-1]:
            inputs = self.dropout(layer(inputs).relu())
        logits: Tensor = self.layers[-1](inputs)
        if history is None:
            return logits
        for layer in self.own[:-1]:
            history = layer(history).relu()
        own: Tensor = self.own[-1](history)
        return logits + own.squeeze(-1)


def _linear(widths: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
