"""Outcome of a forecast after its horizon, with the baselines persistence and base rate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forecasting.network import Matrix
from forecasting.series import AlarmSeries
from service.forecasts.base_rates import base_rates
from service.forecasts.target_labels import label_matrix
from wire.enums import Horizon
from wire.forecasts import EXPECTED_FROM

Flags = NDArray[np.bool_]
Spans = Sequence[tuple[int, int]]
QUARTERS = {Horizon.NEAR: 1, Horizon.MAIN: 4, Horizon.FAR: 12}  # length in quarters of the main horizon


@dataclass(frozen=True, eq=False)
class ScoringSpec:
    """Scoring parameters of a version; stored apart from its weights, which may be pruned."""

    version: int
    lookback_us: int
    horizon_us: int
    codes: NDArray[np.int64]
    thresholds: Matrix

    def for_horizon(self, horizon: Horizon) -> "ScoringSpec":
        """Return the parameters of another horizon; only the main one has learned thresholds."""
        if horizon is Horizon.MAIN:
            return self
        thresholds = np.full(len(self.codes), EXPECTED_FROM, dtype=np.float32)
        return replace(self, horizon_us=self.horizon_us * QUARTERS[horizon] // 4, thresholds=thresholds)


@dataclass(frozen=True, eq=False)
class PendingForecast:
    """A forecast to score; the last three fields are the result of an earlier scoring, if any."""

    as_of_us: int
    version: int
    probabilities: Matrix
    event_count: int | None = None
    unobserved: bool = False
    revision_count: int = 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a forecast; arrays in the order of its version's target codes.

    ``unobserved`` means that events of the horizon were lost. ``base_rate`` is NaN while the machine had no
    history. ``revision_count`` is how often late events changed the horizon after scoring.
    """

    as_of_us: int
    horizon_end_us: int
    event_count: int
    unobserved: bool
    occurred: Flags
    persisted: Flags
    predicted: Flags
    base_rate: Matrix
    revision_count: int


@dataclass(frozen=True, eq=False)
class ScoredForecast:
    """An outcome with its forecast."""

    outcome: Outcome
    spec: ScoringSpec
    status: str
    probabilities: Matrix
    scored_us: int


def predicted_positive(probabilities: Matrix, thresholds: Matrix) -> Flags:
    """Return which codes were predicted: by values rounded to four digits, as they are published."""
    rounded, limit = np.asarray(probabilities, dtype=np.float64), np.asarray(thresholds, dtype=np.float64)
    return np.asarray(np.round(rounded, 4) >= np.round(limit, 4))


@dataclass(frozen=True, eq=False)
class Labels:
    """What happened after some moments: rows of moments, columns of the target codes of a version."""

    end: NDArray[np.int64]
    event_count: NDArray[np.int64]
    unobserved: Flags
    occurred: Flags
    persisted: Flags
    base_rate: Matrix


@dataclass(frozen=True, eq=False)
class History:
    """The alarms of a machine, from when they are known (None: never), and spans in which some were lost.

    ``series`` must reach from 90 days before the first moment that is scored to the end of the last horizon.
    """

    series: AlarmSeries
    first_us: int | None
    lost: Spans

    def labels(self, at: NDArray[np.int64], spec: ScoringSpec) -> Labels:
        """Return what happened in the horizon after each moment; it does not depend on when events arrived."""
        series, end = self.series, at + spec.horizon_us
        unobserved = np.zeros(len(at), dtype=np.bool_)
        for start, stop in self.lost:
            unobserved |= (start < end) & (stop >= at)
        if self.first_us is None:
            rates = np.full((len(at), len(spec.codes)), np.nan, dtype=np.float32)
        else:
            rates = base_rates(series, self.first_us, at, spec.horizon_us, spec.codes)
        return Labels(
            end,
            np.searchsorted(series.times, end) - np.searchsorted(series.times, at),
            unobserved,
            label_matrix(series, at, end, spec.codes),
            label_matrix(series, at - spec.lookback_us, at, spec.codes),
            rates,
        )


def score(pending: Iterable[PendingForecast], spec: ScoringSpec, history: History) -> list[Outcome]:
    """Score forecasts of one machine and version."""
    forecasts = list(pending)
    labels = history.labels(np.array([forecast.as_of_us for forecast in forecasts], dtype=np.int64), spec)
    probabilities = np.array([forecast.probabilities for forecast in forecasts]).reshape(labels.occurred.shape)
    predicted = predicted_positive(probabilities, spec.thresholds)
    return [
        Outcome(
            forecast.as_of_us,
            int(labels.end[i]),
            int(labels.event_count[i]),
            bool(labels.unobserved[i]),
            labels.occurred[i],
            labels.persisted[i],
            predicted[i],
            labels.base_rate[i],
            forecast.revision_count
            + _has_changed(forecast, int(labels.event_count[i]), unobserved=bool(labels.unobserved[i])),
        )
        for i, forecast in enumerate(forecasts)
    ]


def _has_changed(before: PendingForecast, event_count: int, *, unobserved: bool) -> bool:
    if before.event_count is None:
        return False
    return (before.event_count, before.unobserved) != (event_count, unobserved)
