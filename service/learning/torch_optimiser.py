"""Learn arrow, training: Adam's step and nothing around it.

The same fused arithmetic as ``torch.optim.Adam``, to the same bits. That class loads torch's compiler when it is
first made, which takes longer than the steps do.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Moves parameters by their gradients, at a rate of its own for each."""

    def __init__(self, parameters: Iterable[Tensor], *, rate: float) -> None:
        self._parameters, self._rate = list(parameters), rate
        self._means = [torch.zeros_like(one) for one in self._parameters]
        self._squares = [torch.zeros_like(one) for one in self._parameters]
        self._steps = [torch.zeros(()) for _ in self._parameters]

    def zero_grad(self) -> None:
        """Begin the next step."""
        for one in self._parameters:
            one.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter; each must have a gradient."""
        gradients = [one.grad for one in self._parameters if one.grad is not None]
        adam(
            self._parameters,
            gradients,
            self._means,
            self._squares,
            [],
            self._steps,
            fused=True,
            beta1=_BETA1,
            beta2=_BETA2,
            lr=self._rate,
            eps=_EPSILON,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )
