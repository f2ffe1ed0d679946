"""A learned model, ready to serve: a machine's alarms in, calibrated probabilities out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from forecasting.calibration import Calibration
from forecasting.features import alarm_counts
from forecasting.history import HistorySpec, Past, machine_history, own_history, with_machine
from forecasting.network import Matrix, Network
from forecasting.series import AlarmSeries, micros
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec, evidence


@dataclass(frozen=True, eq=False)
class Record:
    """A machine's alarms, as far back as a model reads, and since when it could be heard."""

    series: AlarmSeries
    since: datetime


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Everything a forecast needs beside the alarms; ``thresholds`` say from where on a code is expected.

    With a ``history`` the network also reads each target code's own past; the paper's network does not.
    """

    spec: WindowSpec
    vocabulary: Vocabulary
    network: Network
    calibration: Calibration
    thresholds: Matrix
    history: HistorySpec | None = None

    @property
    def reach(self) -> timedelta:
        """How much of a machine's past is read; alarms before that change nothing."""
        return self.spec.lookback if self.history is None else max(self.spec.lookback, self.history.lookback)

    def probabilities(self, records: Sequence[Record], at: datetime) -> Matrix:
        """Return one row of probabilities a machine as of ``at``, columns in the order of the target codes."""
        columns = self.vocabulary.input_columns
        features = np.stack([alarm_counts(evidence(one.series, at, self.spec), columns) for one in records])
        return self.calibration.probabilities(self.network.logits(features, self._figures(records, at)))

    def _figures(self, records: Sequence[Record], at: datetime) -> Matrix | None:
        if self.history is None:
            return None
        targets, moments = np.array(self.vocabulary.targets, dtype=np.int64), np.array([micros(at)])
        rows = []
        for one in records:
            past = Past(moments, since=micros(one.since), horizon=self.spec.horizon, spec=self.history)
            rows.append(with_machine(own_history(one.series, past, targets), machine_history(one.series, past)))
        return np.concatenate(rows)
