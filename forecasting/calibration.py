"""Calibrate logits: one logistic curve per target code (Platt scaling)."""

from dataclasses import dataclass

import numpy as np

from forecasting.network import Matrix, sigmoid


@dataclass(frozen=True, eq=False)
class Calibration:
    """For each target code, the curve ``sigmoid(scale * logit + shift)``."""

    scale: Matrix
    shift: Matrix

    @classmethod
    def identity(cls, targets: int) -> "Calibration":
        """Return curves that do not change the model's probabilities."""
        return cls(np.ones(targets, dtype=np.float32), np.zeros(targets, dtype=np.float32))

    def probabilities(self, logits: Matrix) -> Matrix:
        """Return the calibrated probability of each target code."""
        return sigmoid(self.scale * logits + self.shift)
