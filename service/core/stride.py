"""Learn arrow, training: how far to go from the old weights to the new ones.

Replay holds a fleet's model together only so far: one more machine bends it to itself. On the straight way back to
the weights before lie models that forecast the old machines better and, as a rule, the new one no worse. How far
to go is not a constant: windows that nobody has learned from decide, every machine's as weighty.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from forecasting.network import Network
from service.core.samples import Samples, concat
from service.core.weights import interpolate

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
