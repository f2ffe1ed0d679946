"""Attribute the outputs of a network to its inputs.

DeepLIFT's rescale rule: between an input and its reference a ReLU passes on the slope of the line through both
points. The contributions then sum to the difference of the outputs; over several references they are the mean
(DeepSHAP).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.network import Layer

Reals = NDArray[np.float64]

_SAME: Final = 1e-9  # closer units get the slope of the ReLU itself


@dataclass(frozen=True, eq=False)
class Attribution:
    """Per output: its value now, its mean over the references, and the contribution of each input."""

    now: Reals
    baseline: Reals
    contributions: Reals


def attribute(layers: tuple[Layer, ...], now: Reals, references: Reals) -> Attribution:
    """Attribute the difference between ``now``, one row of inputs, and ``references``, one or more rows.

    ``contributions`` is outputs by inputs. An input that is the same in all rows contributes zero.
    """
    weights = [layer.weight.astype(np.float64) for layer in layers]
    slopes: list[Reals] = []
    here, there = now, references
    for layer, weight in zip(layers[:-1], weights[:-1], strict=True):
        before, before_there = here @ weight.T + layer.bias, there @ weight.T + layer.bias
        here, there = np.maximum(before, 0.0), np.maximum(before_there, 0.0)
        slopes.append(_slopes(before - before_there, here - there, before))
    # References by outputs by units, backwards through the layers; flat, because one large product is much
    # faster than many small ones.
    count, outputs = len(references), len(weights[-1])
    passed_on = np.broadcast_to(weights[-1], (count, *weights[-1].shape))
    for weight, slope in zip(reversed(weights[:-1]), reversed(slopes), strict=True):
        entering = (passed_on * slope[:, None, :]).reshape(count * outputs, -1) @ weight
        passed_on = entering.reshape(count, outputs, -1)
    contributions = np.einsum("rou,ru->ou", passed_on, now - references)
    last = layers[-1].bias
    return Attribution(
        here @ weights[-1].T + last, (there @ weights[-1].T).mean(axis=0) + last, contributions / count
    )


def _slopes(entered: Reals, left: Reals, here: Reals) -> Reals:
    """Return the share of each unit's difference that a ReLU passes on: between zero and one."""
    apart = np.abs(entered) > _SAME
    return np.where(apart, left / np.where(apart, entered, 1.0), here > 0.0)
