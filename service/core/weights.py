"""Learn arrow, training: weights that grow with the vocabulary, and that change no faster than they must."""

import numpy as np

from forecasting.network import Layer, Matrix, Network


def widen(network: Network, *, inputs: int, outputs: int) -> Network:
    """Return the network with columns for further codes, which say nothing until they are trained.

    New input columns and new output rows are nought and every old block stays as it is, so old outputs do
    not move, and a new code starts from what its own history says to the path that all codes share.
    """
    if inputs < network.inputs or outputs < network.outputs:
        raise ValueError("A network only ever grows: codes are appended to a vocabulary, never taken away.")
    layers = list(network.layers)
    layers[0] = Layer(_padded(layers[0].weight, (0, inputs - network.inputs)), layers[0].bias)
    more = outputs - network.outputs
    layers[-1] = Layer(_padded(layers[-1].weight, (more, 0)), np.pad(layers[-1].bias, (0, more)))
    return Network(tuple(layers), network.own)


def interpolate(old: Network, new: Network, *, share: float) -> Network:
    """Return weights between the old and the new ones, ``share`` of the way; the old ones grow to fit."""
    before = widen(old, inputs=new.inputs, outputs=new.outputs).arrays()
    step = np.float32(share)
    return Network.from_arrays(
        {name: before[name] + step * (after - before[name]) for name, after in new.arrays().items()}
    )


def _padded(weight: Matrix, more: tuple[int, int]) -> Matrix:
    return np.pad(weight, [(0, count) for count in more])
