"""Calibrate logits: one logistic curve per target code (Platt scaling)."""

from dataclasses import dataclass

import numpy as np

from forecasting.network import Matrix, sigmoid


@dataclass(frozen=True, eq=False)
class Calibration:
    """For each target code, the curve ``sigmoid(scale * logit + shift)``.

    ``near`` and ``far`` are the curves of the other two logits of a network that forecasts three horizons.
    """

    scale: Matrix
    shift: Matrix
    near: "Calibration | None" = None
    far: "Calibration | None" = None

    @classmethod
    def identity(cls, targets: int) -> "Calibration":
        """Return curves that do not change the model's probabilities."""
        return cls(np.ones(targets, dtype=np.float32), np.zeros(targets, dtype=np.float32))

    def probabilities(self, logits: Matrix) -> Matrix:
        """Return the calibrated probability of each target code."""
        return sigmoid(self.scale * logits + self.shift)

    def by_horizon(self, logits: Matrix) -> Matrix | None:
        """Return rows by targets by horizons: near, main and far; None for a network with one horizon.

        The near probability is a share of the main one, and the far one adds a share of what is left to one, so
        that they never decrease with the horizon.
        """
        if self.near is None or self.far is None:
            return None
        main = self.probabilities(logits[..., 0])
        near = main * self.near.probabilities(logits[..., 1])
        far = main + (1 - main) * self.far.probabilities(logits[..., 2])
        return np.stack([near, main, far], axis=-1)
