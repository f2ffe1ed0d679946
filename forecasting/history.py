"""Evidence to features, beyond the paper: each code's own recent past, which normalised counts throw away.

A code that is about to come has often just been here, comes at this hour, or comes every week. These figures
say when a code was last seen, how often lately, how regularly, and whether the same horizon of earlier days
held it. All are nought for a code never seen, so a code unknown to an old sample needs no entry in it.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

Figures = NDArray[np.float32]
Moments = NDArray[np.int64]

VERSION: Final = 1  # of the definition below; a stored sample names it, and another one cannot be mixed in


def _hours(*values: int) -> tuple[timedelta, ...]:
    return tuple(timedelta(hours=value) for value in values)


@dataclass(frozen=True)
class HistorySpec:
    """Over which times a code's past is summed up; nothing older than ``lookback`` is ever read."""

    decays: tuple[timedelta, ...] = _hours(1, 4, 8, 24, 72, 168)
    spans: tuple[timedelta, ...] = _hours(1, 8, 28, 168, 720)
    rates: tuple[timedelta, ...] = _hours(168, 720)
    seasons: tuple[timedelta, ...] = _hours(24, 168, 336, 504, 672)

    @property
    def lookback(self) -> timedelta:
        """How much of the event log the figures need."""
        return max(*self.spans, *self.rates, *self.seasons)

    @property
    def width(self) -> int:
        """How many figures describe one code at one moment."""
        return len(self.decays) + len(self.spans) + len(self.rates) + len(self.seasons)


def own_history(
    series: AlarmSeries,
    at: Moments,
    codes: NDArray[np.int64],
    *,
    since: int,
    horizon: timedelta,
    spec: HistorySpec,
) -> Figures:
    """Return moments by codes by figures of each code's own past before each moment.

    ``since`` is when the machine was first heard, in microseconds: what lies before is unknown, not silent.
    """
    by_code = [series.times[series.codes == code] for code in codes]
    parts = [_figures(times, at, since, horizon, spec) for times in by_code]
    return np.stack(parts, axis=1) if parts else np.zeros((len(at), 0, spec.width), dtype=np.float32)


def machine_history(
    series: AlarmSeries, at: Moments, *, since: int, horizon: timedelta, spec: HistorySpec
) -> Figures:
    """Return moments by figures of all codes' past together, and last how much of the lookback was heard."""
    heard = np.clip((at - since) / _micros(spec.lookback), 0.0, 1.0).astype(np.float32)
    return np.column_stack([_figures(series.times, at, since, horizon, spec), heard])


def _figures(times: Moments, at: Moments, since: int, horizon: timedelta, spec: HistorySpec) -> Figures:
    before = np.searchsorted(times, at, side="left")
    oldest = at - _micros(spec.lookback)

    def seen(start: Moments, end: Moments) -> NDArray[np.intp]:
        return np.searchsorted(times, end, side="left") - np.searchsorted(times, start, side="left")

    last = times[np.maximum(before - 1, 0)] if len(times) else oldest - 1
    age = np.where((before > 0) & (last >= oldest), at - last, np.inf)
    columns = [np.exp(-age / _micros(decay)) for decay in spec.decays]
    columns += [np.log1p(seen(at - _micros(span), at)) for span in spec.spans]
    columns += [_rate(times, at, np.maximum(at - _micros(span), since), _micros(horizon)) for span in spec.rates]
    columns += [seen(at - _micros(lag), at - _micros(lag) + _micros(horizon)) > 0 for lag in spec.seasons]
    return np.stack(columns, axis=1).astype(np.float32)


def _rate(times: Moments, at: Moments, start: Moments, horizon: int) -> NDArray[np.float64]:
    """Return the share of all horizons that begin at or after ``start`` and end by ``at`` and hold the code.

    Of all horizons, not of those on some grid: the measure of the moments whose horizon holds an alarm.
    """
    end = at - horizon
    gaps = np.minimum(np.diff(times, prepend=times[:1] - horizon), horizon)
    covered = np.concatenate([[0], np.cumsum(gaps)])

    def held(moment: Moments) -> NDArray[np.int64]:
        done = np.searchsorted(times, moment, side="right")
        following = np.minimum(done, len(times) - 1)
        begun = np.maximum(0, moment - (times[following] - gaps[following]))
        return covered[done] + np.where(done < len(times), begun, 0)

    if len(times) == 0:
        return np.zeros(len(at))
    length = np.maximum(end - start, 1)
    return np.where(end > start, (held(end) - held(np.minimum(start, end))) / length, 0.0)


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
