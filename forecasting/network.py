"""The forward pass that serves: plain numpy over the weights that torch trained."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layer:
    """One linear layer: ``x @ weight.T + bias``, laid out as torch has it."""

    weight: Matrix
    bias: Matrix


@dataclass(frozen=True, eq=False)
class Network:
    """A multi-layer perceptron: ReLU between layers, one independent logit for each target code."""

    layers: tuple[Layer, ...]

    @property
    def inputs(self) -> int:
        """How many input columns the first layer reads."""
        return int(self.layers[0].weight.shape[1])

    @property
    def outputs(self) -> int:
        """How many target columns the last layer writes."""
        return int(self.layers[-1].weight.shape[0])

    def logits(self, features: Matrix) -> Matrix:
        """Return the logits of a batch of feature rows."""
        hidden = features
        for layer in self.layers[:-1]:
            hidden = np.maximum(hidden @ layer.weight.T + layer.bias, np.float32(0))
        last = self.layers[-1]
        return hidden @ last.weight.T + last.bias


def sigmoid(logits: Matrix) -> Matrix:
    """Return probabilities for logits of any size, without overflow."""
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-logits))).astype(np.float32)
