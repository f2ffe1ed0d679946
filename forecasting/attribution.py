"""Beside the alarm arrow: how much each input of a network moved its outputs, so that the parts make the whole.

DeepLIFT's rescale rule: where an input lies elsewhere than at its reference, a ReLU passes on the slope of the
line between the two rather than its slope at one of them. What enters a layer is then shared out without loss,
and the parts sum to the difference of the outputs. Over several references it is their mean (DeepSHAP).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.network import Layer

Reals = NDArray[np.float64]

_SAME: Final = 1e-9  # units closer than this have no line between them; their slope is that of the ReLU itself


@dataclass(frozen=True, eq=False)
class Attribution:
    """For each output: its value now, its mean over the references, and each input's part in the difference."""

    now: Reals
    baseline: Reals
    contributions: Reals


def attribute(layers: tuple[Layer, ...], now: Reals, usual: Reals) -> Attribution:
    """Share out what ``now``, one row of inputs, adds to the outputs over ``usual``, one or more rows.

    ``parts`` is outputs by inputs. An input that is the same in all rows has no part at all.
    """
    weights = [layer.weight.astype(np.float64) for layer in layers]
    slopes: list[Reals] = []
    here, there = now, usual
    for layer, weight in zip(layers[:-1], weights[:-1], strict=True):
        before, before_there = here @ weight.T + layer.bias, there @ weight.T + layer.bias
        here, there = np.maximum(before, 0.0), np.maximum(before_there, 0.0)
        slopes.append(_slopes(before - before_there, here - there, before))
    # References by outputs by units, backwards through the layers; flat, because one large product is far
    # quicker than many small ones.
    references, outputs = len(usual), len(weights[-1])
    passed_on = np.broadcast_to(weights[-1], (references, *weights[-1].shape))
    for weight, slope in zip(reversed(weights[:-1]), reversed(slopes), strict=True):
        entering = (passed_on * slope[:, None, :]).reshape(references * outputs, -1) @ weight
        passed_on = entering.reshape(references, outputs, -1)
    parts = np.einsum("rou,ru->ou", passed_on, now - usual)
    last = layers[-1].bias
    return Attribution(
        here @ weights[-1].T + last, (there @ weights[-1].T).mean(axis=0) + last, parts / references
    )


def _slopes(entered: Reals, left: Reals, here: Reals) -> Reals:
    """Return what a ReLU passes on of each unit's difference: between nought and one."""
    apart = np.abs(entered) > _SAME
    return np.where(apart, left / np.where(apart, entered, 1.0), here > 0.0)
