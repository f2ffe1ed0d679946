"""The forward pass in numpy, with weights trained by torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forecasting.encoding import Encoding

Matrix = NDArray[np.float32]
Figures = NDArray[np.floating]

_AT_ONCE = 1024  # rows: their encoded history fits into memory for any number of codes


@dataclass(frozen=True, eq=False)
class Layer:
    """One linear layer: ``x @ weight.T + bias``, laid out as torch has it."""

    weight: Matrix
    bias: Matrix

    def __call__(self, features: Matrix) -> Matrix:
        """Apply the layer to the last axis of ``features``."""
        values = features @ self.transposed
        values += self.bias
        return values

    @cached_property
    def transposed(self) -> Matrix:
        """The weight as rows of inputs."""
        # Contiguous for BLAS: many rows take two thirds of the time of torch's layout.
        return np.ascontiguousarray(self.weight.T)


@dataclass(frozen=True, eq=False)
class Network:
    """A multi-layer perceptron: ReLU between layers, one independent logit for each target code.

    Beside it may run a path from each target code's own history to its own logit, ``own``: a small
    perceptron that all codes share, which may read the history through an ``encoding``. The paper's network
    has none.

    With ``link`` the own path has two more outputs: the logits that a code comes within the near horizon if it
    comes within the main one, and that it comes within the far horizon if not within the main one. To each, its
    ``link`` times the main logit is added.
    """

    layers: tuple[Layer, ...]
    own: tuple[Layer, ...] = ()
    encoding: Encoding | None = None
    link: Matrix | None = None

    @property
    def inputs(self) -> int:
        """How many input columns the first layer reads."""
        return int(self.layers[0].weight.shape[1])

    @property
    def outputs(self) -> int:
        """How many target columns the last layer writes."""
        return int(self.layers[-1].weight.shape[0])

    def logits(self, features: Matrix, history: Figures | None = None) -> Matrix:
        """Return the logits of a batch of feature rows; ``history`` is rows by targets by features."""
        return self.horizon_logits(features, history)[..., 0]

    def horizon_logits(self, features: Matrix, history: Figures | None = None) -> Matrix:
        """Return rows by targets by logits: the main one and, with ``link``, the near and the far one."""
        main = _forward(self.layers, features)
        if not self.own:
            return main[..., None]
        if history is None:
            raise ValueError("This network reads each code's own history, and none was given.")
        logits = np.empty((*main.shape, 1 if self.link is None else 3), dtype=np.float32)
        for start in range(0, len(history), _AT_ONCE):
            logits[start : start + _AT_ONCE] = self._own_logits(history[start : start + _AT_ONCE])
        logits[..., 0] += main
        if self.link is not None:
            logits[..., 1:] += self.link * logits[..., :1]
        return logits

    def own_inputs(self, history: Figures) -> Matrix:
        """Return rows by targets by inputs of the own path, encoded if it reads an encoding."""
        figures = history.astype(np.float32, copy=False)
        if self.encoding is None:
            return figures
        codes, machine = self.encoding.split(figures)
        shared = np.broadcast_to(machine, (*codes.shape[:-1], machine.shape[-1]))
        return np.concatenate([codes, shared], axis=-1)

    def _own_logits(self, history: Figures) -> Matrix:
        figures = history.astype(np.float32, copy=False)
        if self.encoding is None:
            return _forward(self.own, figures)
        first, *others = self.own
        codes, machine = self.encoding.split(figures)  # the machine's are the same for all codes: read them once
        of_codes, of_machine = np.split(first.transposed, [codes.shape[-1]])
        hidden = codes @ of_codes
        hidden += machine @ of_machine + first.bias
        np.maximum(hidden, np.float32(0), out=hidden)
        return _forward(tuple(others), hidden)

    def arrays(self) -> dict[str, Matrix]:
        """Return the weights by name, as in a weights file."""
        arrays = {
            f"{path}.{index}.{name}": getattr(layer, name)
            for path, layers in (("layers", self.layers), ("own", self.own))
            for index, layer in enumerate(layers)
            for name in ("weight", "bias")
        }
        return arrays if self.link is None else arrays | {"link": self.link}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Matrix], encoding: Encoding | None = None) -> "Network":
        """Build a network from the weights that ``arrays`` gave."""

        def path(name: str) -> tuple[Layer, ...]:
            depth = sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in arrays)
            return tuple(Layer(arrays[f"{name}.{i}.weight"], arrays[f"{name}.{i}.bias"]) for i in range(depth))

        return cls(path("layers"), path("own"), encoding, arrays.get("link"))


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
