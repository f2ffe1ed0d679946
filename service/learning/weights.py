"""Learn arrow, training: weights between torch and the numpy network that serves, and how they grow."""

import numpy as np
import torch

from forecasting.network import Layer, Matrix, Network
from service.learning.module import Module


def to_network(module: Module) -> Network:
    """Return a copy of the module's weights as the network that serves."""
    return Network.of({name: tensor.numpy().copy() for name, tensor in module.state_dict().items()})


def to_module(network: Network, *, dropout: float) -> Module:
    """Return a module that starts from the network's weights."""
    module = Module(_widths(network.layers), _widths(network.own), dropout=dropout)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in network.arrays().items()})
    return module


def grown(network: Network, *, inputs: int, outputs: int) -> Network:
    """Return the network with columns for further codes, which say nothing until they are trained.

    New input columns and new output rows are nought and every old block stays as it is, so old outputs do
    not move, and a new code starts from what its own history says and no more.
    """
    if inputs < network.inputs or outputs < network.outputs:
        raise ValueError("A network only ever grows: codes are appended to a vocabulary, never taken away.")
    layers = list(network.layers)
    layers[0] = Layer(_padded(layers[0].weight, (0, inputs - network.inputs)), layers[0].bias)
    more = outputs - network.outputs
    layers[-1] = Layer(_padded(layers[-1].weight, (more, 0)), np.pad(layers[-1].bias, (0, more)))
    return Network(tuple(layers), network.own)


def _padded(weight: Matrix, more: tuple[int, int]) -> Matrix:
    return np.pad(weight, [(0, count) for count in more])


def _widths(layers: tuple[Layer, ...]) -> list[int]:
    return [layer.weight.shape[1] for layer in layers] + [layer.weight.shape[0] for layer in layers[-1:]]
