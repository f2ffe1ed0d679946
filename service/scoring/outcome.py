"""What became of a forecast once its horizon had closed, beside what the simplest forecasters said."""

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
    """What scoring needs of a version: kept apart from its weights, which may be pruned one day."""

    version: int
    lookback_us: int
    horizon_us: int
    codes: NDArray[np.int64]
    thresholds: Matrix


@dataclass(frozen=True, eq=False)
class PendingForecast:
    """A forecast to score; the last three say what an earlier scoring found, if there was one."""

    as_of_us: int
    version: int
    probabilities: Matrix
    events_occurred: int | None = None
    unobserved: bool = False
    revision_count: int = 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a forecast turned out; arrays in the order of its version's target codes.

    ``unheard`` means that events of the horizon were lost, so that a code's absence proves nothing.
    ``base_rate`` is NaN while the machine had no past. ``revised`` counts how often something late fell into
    the horizon after it had been scored.
    """

    as_of_us: int
    horizon_end_us: int
    events_occurred: int
    unobserved: bool
    occurred: Flags
    persisted: Flags
    predicted: Flags
    base_rate: Matrix
    revision_count: int


@dataclass(frozen=True, eq=False)
class ScoredForecast:
    """An outcome beside the forecast it is about, as a person looks back on it."""

    outcome: Outcome
    spec: ScoringSpec
    status: str
    probabilities: Matrix
    scored_us: int


def predicted_positive(probabilities: Matrix, thresholds: Matrix) -> Flags:
    """Return which codes were expected, as people were told: by figures rounded to four digits."""
    said, limit = np.asarray(probabilities, dtype=np.float64), np.asarray(thresholds, dtype=np.float64)
    return np.asarray(np.round(said, 4) >= np.round(limit, 4))


def score(
    due: Iterable[PendingForecast], measure: ScoringSpec, series: AlarmSeries, *, first_us: int | None, deaf: Spans
) -> list[Outcome]:
    """Score forecasts of one machine and version by everything that is known now.

    The outcome depends on the events alone, never on when they arrived. ``series`` must reach from 90 days
    before the first forecast to the end of the last horizon; ``deaf`` are the spans whose events were lost.
    """
    asked = list(due)
    at = np.array([one.as_of_us for one in asked], dtype=np.int64)
    end = at + measure.horizon_us
    came = label_matrix(series, at, end, measure.codes)
    persisted = label_matrix(series, at - measure.lookback_us, at, measure.codes)
    said = np.array([one.probabilities for one in asked]).reshape(len(asked), len(measure.codes))
    expected = predicted_positive(said, measure.thresholds)
    events = np.searchsorted(series.times, end) - np.searchsorted(series.times, at)
    unheard = np.zeros(len(asked), dtype=np.bool_)
    for start, stop in deaf:
        unheard |= (start < end) & (stop >= at)
    never = np.full(came.shape, np.nan, dtype=np.float32)
    rates = never if first_us is None else base_rates(series, first_us, at, measure.horizon_us, measure.codes)
    return [
        Outcome(
            one.as_of_us,
            int(end[i]),
            int(events[i]),
            bool(unheard[i]),
            came[i],
            persisted[i],
            expected[i],
            rates[i],
            one.revision_count + _is_news(one, int(events[i]), unheard=bool(unheard[i])),
        )
        for i, one in enumerate(asked)
    ]


def _is_news(before: PendingForecast, events: int, *, unheard: bool) -> bool:
    """Say whether the horizon holds what it did not hold when the forecast was scored before."""
    return before.events_occurred is not None and (before.events_occurred, before.unobserved) != (events, unheard)
