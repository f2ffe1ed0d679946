"""The serving model: a machine's alarms in, calibrated probabilities out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from forecasting.calibration import Calibration
from forecasting.features import alarm_counts, fleet_counts
from forecasting.history import (
    HistorySpec,
    QueryPoints,
    append_machine_features,
    as_trained,
    code_recency_features,
    fleet_code_recency_features,
    fleet_machine_activity_features,
    machine_activity_features,
)
from forecasting.network import Matrix, Network
from forecasting.ragged import FleetSeries
from forecasting.series import AlarmSeries, to_us
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec, input_window


@dataclass(frozen=True, eq=False)
class ObservedSeries:
    """A machine's alarms, as far back as a model reads, and since when it was observed."""

    series: AlarmSeries
    since: datetime


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a network: rows of each code's share, and of each target's history if it reads that."""

    features: Matrix
    history: Matrix | None = None


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Everything a forecast needs beside the alarms; ``thresholds`` are the decision thresholds per code.

    With a ``history`` the network also reads each target code's own past; the paper's network does not.
    """

    spec: WindowSpec
    vocabulary: Vocabulary
    network: Network
    calibration: Calibration
    thresholds: Matrix
    history: HistorySpec | None = None

    @property
    def lookback(self) -> timedelta:
        """How much of a machine's past is read."""
        return self.spec.lookback if self.history is None else max(self.spec.lookback, self.history.lookback)

    def probabilities(self, records: Sequence[ObservedSeries], at: datetime) -> Matrix:
        """Return one row of probabilities a machine as of ``at``, columns in the order of the target codes."""
        return self.forecast(records, at)[0]

    def forecast(self, records: Sequence[ObservedSeries], at: datetime) -> tuple[Matrix, Matrix | None]:
        """Return machines by codes of probabilities, and by horizons beside it if there are three."""
        fleet = FleetSeries.from_series([record.series for record in records])
        now = to_us(at)
        seen = fleet.between(now - self.spec.lookback // timedelta(microseconds=1), now)
        features = fleet_counts(seen, self.vocabulary.input_columns)
        history = None
        if self.history is not None:
            since = np.array([to_us(record.since) for record in records], dtype=np.int64)
            past = QueryPoints(
                np.full(len(records), now), since=since, horizon=self.spec.horizon, spec=self.history
            )
            own = fleet_code_recency_features(fleet, past, self.vocabulary.target_columns)
            history = as_trained(append_machine_features(own, fleet_machine_activity_features(fleet, past)))
        logits = self.network.horizon_logits(features, history)
        by_horizon = self.calibration.by_horizon(logits)
        if by_horizon is not None:
            return by_horizon[..., 1], by_horizon
        return self.calibration.probabilities(logits[..., 0]), None

    def inputs(self, record: ObservedSeries, moments: Sequence[datetime]) -> Inputs:
        """Return what the network reads of one machine, a row for each moment."""
        columns = self.vocabulary.input_columns
        rows = [alarm_counts(input_window(record.series, at, self.spec), columns) for at in moments]
        features = np.stack(rows) if rows else np.zeros((0, columns.size), dtype=np.float32)
        if self.history is None:
            return Inputs(features)
        at = np.array([to_us(one) for one in moments], dtype=np.int64)
        past = QueryPoints(at, since=to_us(record.since), horizon=self.spec.horizon, spec=self.history)
        targets = np.array(self.vocabulary.targets, dtype=np.int64)
        own = code_recency_features(record.series, past, targets)
        history = append_machine_features(own, machine_activity_features(record.series, past))
        return Inputs(features, as_trained(history))
