"""Outcome of a forecast after its horizon, with the baselines persistence and base rate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.network import Matrix
from forecasting.series import AlarmSeries
from service.forecasts.base_rates import base_rates
from service.forecasts.target_labels import label_matrix

Flags = NDArray[np.bool_]
Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class ScoringSpec:
    """Scoring parameters of a version; stored apart from its weights, which may be pruned."""

    version: int
    lookback_us: int
    horizon_us: int
    codes: NDArray[np.int64]
    thresholds: Matrix


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


def score(
    pending: Iterable[PendingForecast],
    spec: ScoringSpec,
    series: AlarmSeries,
    *,
    first_us: int | None,
    unobserved_spans: Spans,
) -> list[Outcome]:
    """Score forecasts of one machine and version.

    The outcome depends on the events alone, not on when they arrived. ``series`` must reach from 90 days before
    the first forecast to the end of the last horizon.
    """
    forecasts = list(pending)
    at = np.array([forecast.as_of_us for forecast in forecasts], dtype=np.int64)
    end = at + spec.horizon_us
    occurred = label_matrix(series, at, end, spec.codes)
    persisted = label_matrix(series, at - spec.lookback_us, at, spec.codes)
    shape = (len(forecasts), len(spec.codes))
    probabilities = np.array([forecast.probabilities for forecast in forecasts]).reshape(shape)
    predicted = predicted_positive(probabilities, spec.thresholds)
    events = np.searchsorted(series.times, end) - np.searchsorted(series.times, at)
    unobserved = np.zeros(len(forecasts), dtype=np.bool_)
    for start, stop in unobserved_spans:
        unobserved |= (start < end) & (stop >= at)
    if first_us is None:
        rates = np.full(shape, np.nan, dtype=np.float32)
    else:
        rates = base_rates(series, first_us, at, spec.horizon_us, spec.codes)
    return [
        Outcome(
            forecast.as_of_us,
            int(end[i]),
            int(events[i]),
            bool(unobserved[i]),
            occurred[i],
            persisted[i],
            predicted[i],
            rates[i],
            forecast.revision_count + _has_changed(forecast, int(events[i]), unobserved=bool(unobserved[i])),
        )
        for i, forecast in enumerate(forecasts)
    ]


def _has_changed(before: PendingForecast, event_count: int, *, unobserved: bool) -> bool:
    if before.event_count is None:
        return False
    return (before.event_count, before.unobserved) != (event_count, unobserved)
