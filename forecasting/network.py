"""The forward pass in numpy, with weights trained by torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layer:
    """One linear layer: ``x @ weight.T + bias``, laid out as torch has it."""

    weight: Matrix
    bias: Matrix

    def __call__(self, features: Matrix) -> Matrix:
        """Apply the layer to the last axis of ``features``."""
        values = features @ self._transposed
        values += self.bias
        return values

    @cached_property
    def _transposed(self) -> Matrix:
        # Contiguous for BLAS: many rows take two thirds of the time of torch's layout.
        return np.ascontiguousarray(self.weight.T)


@dataclass(frozen=True, eq=False)
class Network:
    """A multi-layer perceptron: ReLU between layers, one independent logit for each target code.

    Beside it may run a path from each target code's own history to its own logit, ``own``: a small
    perceptron that all codes share. The paper's network has none.
    """

    layers: tuple[Layer, ...]
    own: tuple[Layer, ...] = ()

    @property
    def inputs(self) -> int:
        """How many input columns the first layer reads."""
        return int(self.layers[0].weight.shape[1])

    @property
    def outputs(self) -> int:
        """How many target columns the last layer writes."""
        return int(self.layers[-1].weight.shape[0])

    def logits(self, features: Matrix, history: Matrix | None = None) -> Matrix:
        """Return the logits of a batch of feature rows; ``history`` is rows by targets by features."""
        logits = _forward(self.layers, features)
        if not self.own:
            return logits
        if history is None:
            raise ValueError("This network reads each code's own history, and none was given.")
        return logits + _forward(self.own, history)[..., 0]

    def arrays(self) -> dict[str, Matrix]:
        """Return the weights by name, as in a weights file."""
        return {
            f"{path}.{index}.{name}": getattr(layer, name)
            for path, layers in (("layers", self.layers), ("own", self.own))
            for index, layer in enumerate(layers)
            for name in ("weight", "bias")
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Matrix]) -> "Network":
        """Build a network from the weights that ``arrays`` gave."""

        def path(name: str) -> tuple[Layer, ...]:
            depth = sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in arrays)
            return tuple(Layer(arrays[f"{name}.{i}.weight"], arrays[f"{name}.{i}.bias"]) for i in range(depth))

        return cls(path("layers"), path("own"))


def _forward(layers: tuple[Layer, ...], features: Matrix) -> Matrix:
    hidden = features
    for layer in layers[:-1]:
        hidden = layer(hidden)
        np.maximum(hidden, np.float32(0), out=hidden)
    return layers[-1](hidden)


def sigmoid(logits: Matrix) -> Matrix:
    """Return probabilities for logits of any size, without overflow."""
    with np.errstate(over="ignore"):
        return np.float32(1) / (np.float32(1) + np.exp(-logits))
