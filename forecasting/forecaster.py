"""A learned model, ready to serve: evidence in, calibrated probabilities out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forecasting.calibration import Calibration
from forecasting.features import alarm_counts
from forecasting.network import Matrix, Network
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Everything a forecast needs beside the evidence; ``thresholds`` say from where on a code is expected."""

    spec: WindowSpec
    vocabulary: Vocabulary
    network: Network
    calibration: Calibration
    thresholds: Matrix

    def probabilities(self, seen: Sequence[AlarmSeries]) -> Matrix:
        """Return one row of probabilities for each evidence window, columns in the order of the target codes."""
        columns = self.vocabulary.input_columns
        features = np.stack([alarm_counts(window, columns) for window in seen])
        return self.calibration.probabilities(self.network.logits(features))
