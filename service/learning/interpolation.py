"""Learn arrow, training: how far to go from the old weights to the new ones.

Replay holds a fleet's model together only so far: one more machine bends it to itself. On the straight way back to
the weights before lie models that forecast the old machines better and, as a rule, the new one no worse. How far
to go is not a constant: windows that nobody has learned from decide, every machine's as weighty.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from forecasting.network import Layer, Matrix, Network
from service.learning.samples import Samples, concat

_SHORTER: Final = 0.7  # than the stride before
_STRIDES: Final = 7  # the shortest goes an eighth of the way: a machine that is learned is to be heard


def best_interpolation(old: Network, new: Network, checks: Sequence[Samples]) -> Network:
    """Return the weights on the way from the old to the new ones that forecast the checks best.

    ``checks`` are samples of one machine each. Strides are tried from the whole way down, for as long as the
    next shorter one is better.
    """
    together = concat(checks)
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for part in checks])

    def loss(network: Network) -> float:
        logits = network.logits(together.inputs, together.history)
        surprise = np.logaddexp(0, logits) - logits * together.labels
        return float(weights @ surprise.mean(axis=1))

    best, least = new, loss(new)
    for stride in range(1, _STRIDES):
        nearer = interpolate(old, new, share=_SHORTER**stride)
        if (found := loss(nearer)) >= least:
            break
        best, least = nearer, found
    return best


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
