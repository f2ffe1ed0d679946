"""Learn arrow, training: weights between torch and the numpy network that serves."""

import torch

from forecasting.network import Layer, Network
from service.learning.torch_module import Dropout, Module


def to_network(module: Module) -> Network:
    """Return a copy of the module's weights as the network that serves."""
    return Network.from_arrays({name: tensor.numpy().copy() for name, tensor in module.state_dict().items()})


def to_module(network: Network, *, dropout: Dropout) -> Module:
    """Return a module that starts from the network's weights."""
    module = Module(_widths(network.layers), _widths(network.own), dropout=dropout)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in network.arrays().items()})
    return module


def _widths(layers: tuple[Layer, ...]) -> list[int]:
    return [layer.weight.shape[1] for layer in layers] + [layer.weight.shape[0] for layer in layers[-1:]]
