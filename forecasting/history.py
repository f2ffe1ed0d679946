"""Evidence to features, beyond the paper: each code's own recent past, which normalised counts throw away.

A code that is about to come has often just been here, comes at this hour, or comes every week. These figures
say when a code was last seen, in time and in alarms since, how regularly it comes, and whether the same
horizon of earlier days held it; and how busy the machine as a whole is. A code never seen has only noughts,
so a code unknown to an old sample needs no entry in it.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.series import AlarmSeries

Figures = NDArray[np.float32]
Reals = NDArray[np.float64]
Moments = NDArray[np.int64]
Places = NDArray[np.intp]

VERSION: Final = 1  # of the definition below; a stored sample names it, and another one cannot be mixed in
_DAY: Final = timedelta(days=1)


def _hours(*values: int) -> tuple[timedelta, ...]:
    return tuple(timedelta(hours=value) for value in values)


@dataclass(frozen=True)
class HistorySpec:
    """By what a past is summed up; nothing older than ``lookback`` is ever read.

    ``decays`` are times and ``alarms`` numbers of other alarms in which a sight fades to 1/e, ``spans`` those
    in which a machine's alarms are counted, ``rates`` those over which horizons with a code are counted.
    ``days`` ago the same horizon is looked up, and over ``weeks`` of days its share, also fading by ``fading``
    a day. A machine that is silent for a ``pause`` has stopped.
    """

    decays: tuple[timedelta, ...] = _hours(1, 4, 8, 24, 72, 168)
    alarms: tuple[int, ...] = (5, 20, 80, 320)
    spans: tuple[timedelta, ...] = _hours(1, 8, 28, 168, 720)
    rates: tuple[timedelta, ...] = _hours(168, 720)
    days: tuple[int, ...] = (1, 7, 14, 21, 28)
    weeks: tuple[int, ...] = (1, 4)
    fading: float = 0.8
    pause: timedelta = timedelta(hours=4)

    @property
    def lookback(self) -> timedelta:
        """How much of the event log the figures need."""
        return max(*self.spans, *self.rates, *(day * _DAY for day in self.days), 7 * max(self.weeks) * _DAY)

    @property
    def width(self) -> int:
        """How many figures describe one code at one moment."""
        return self.recent + len(self.rates) + len(self.days) + len(self.weeks) + 1

    @property
    def recent(self) -> int:
        """How many of them, the first ones, say when it was last seen; the others say how regularly it comes."""
        return len(self.decays) + len(self.alarms)


@dataclass(frozen=True)
class Past:
    """Where to look from: the moments asked about, when the machine was first heard, and how far is ahead."""

    at: Moments
    since: int
    horizon: timedelta
    spec: HistorySpec

    @property
    def oldest(self) -> Moments:
        """The first moment that counts, for each one asked about."""
        return self.at - _micros(self.spec.lookback)


def own_history(series: AlarmSeries, past: Past, codes: NDArray[np.int64]) -> Figures:
    """Return moments by codes by figures of each code's own past before each moment."""
    runs = _runs(series)
    parts = []
    for code in codes:
        places = np.flatnonzero(series.codes == code)
        times = series.times[places]
        columns = [*_fading(times, past), *_passed(series, runs, places, past), *_regular(times, past)]
        parts.append(np.stack(columns, axis=1))
    empty = np.zeros((len(past.at), 0, past.spec.width))
    return (np.stack(parts, axis=1) if parts else empty).astype(np.float32)


def machine_history(series: AlarmSeries, past: Past) -> Figures:
    """Return moments by figures of all codes' past together, and last how much of the lookback was heard."""
    times = series.times
    counts = [np.log1p(_seen(times, past.at - _micros(span), past.at)) for span in past.spec.spans]
    heard = np.clip((past.at - past.since) / _micros(past.spec.lookback), 0.0, 1.0)
    columns = [*_fading(times, past), *counts, *_regular(times, past), *_working(times, past), heard]
    return np.stack(columns, axis=1).astype(np.float32)


def with_machine(own: Figures, machine: Figures) -> Figures:
    """Return moments by codes by figures: each code's own, followed by those of its machine."""
    shared = np.broadcast_to(machine[:, None, :], (*own.shape[:2], machine.shape[1]))
    return np.concatenate([own, shared], axis=2)


def _fading(times: Moments, past: Past) -> list[Reals]:
    """How long ago the last alarm was: 1 for now, nought for never."""
    before, last = _last(times, past)
    age = np.where(before > 0, past.at - last, np.inf)
    return [np.exp(-age / _micros(decay)) for decay in past.spec.decays]


def _passed(series: AlarmSeries, runs: NDArray[np.int64], places: Places, past: Past) -> list[Reals]:
    """How many other alarms have passed since the code was last seen, repeats collapsed."""
    before, _ = _last(series.times[places], past)
    now = np.searchsorted(series.times, past.at)
    after = places[np.maximum(before, 1) - 1] + 1 if len(places) else now
    passed = np.where(before > 0, runs[now] - runs[after], np.inf)
    return [np.exp(-passed / number) for number in past.spec.alarms]


def _regular(times: Moments, past: Past) -> list[Reals]:
    """How often horizons held an alarm, and whether the same horizon of earlier days did."""
    spec, horizon = past.spec, _micros(past.horizon)
    rates = [
        _rate(times, past.at, np.maximum(past.at - _micros(span), past.since), horizon) for span in spec.rates
    ]
    starts = past.at[:, None] - _micros(_DAY) * np.arange(1, 7 * max(spec.weeks) + 1)
    held = _seen(times, starts, starts + horizon) > 0
    known = starts >= past.since
    kept = held & known
    lags = [held[:, day - 1].astype(np.float64) for day in spec.days]
    shares = [_share(kept[:, : 7 * week], known[:, : 7 * week]) for week in spec.weeks]
    weights = spec.fading ** np.arange(starts.shape[1])
    return [*rates, *lags, *shares, _share(kept * weights, known * weights)]


def _working(times: Moments, past: Past) -> list[Reals]:
    """How long and how busily the machine has been working since its last pause; nought while it pauses."""
    before, last = _last(times, past)
    pause = _micros(past.spec.pause)
    resumed = np.flatnonzero(np.diff(times, prepend=times[:1] - pause - 1) > pause)
    first = resumed[np.maximum(np.searchsorted(resumed, before), 1) - 1] if len(times) else before
    first = np.maximum(first, np.searchsorted(times, past.oldest))
    works = (before > 0) & (past.at - last < pause)
    hours = np.where(works, past.at - (times[np.minimum(first, len(times) - 1)] if len(times) else 0), 0) / 3.6e9
    return [
        np.where(works, np.exp(-hours / 8), 0.0),
        np.log1p(hours),
        np.log1p(np.where(works, before - first, 0)),
    ]


def _last(times: Moments, past: Past) -> tuple[Places, Moments]:
    """Return how many alarms lie before each moment, nought if none is recent, and when the last one was."""
    if len(times) == 0:
        return np.zeros(len(past.at), dtype=np.intp), past.at
    before = np.searchsorted(times, past.at)
    last = times[np.maximum(before, 1) - 1]
    return np.where((before > 0) & (last >= past.oldest), before, 0), last


def _rate(times: Moments, at: Moments, start: Moments, horizon: int) -> Reals:
    """Return the share of all horizons that begin at or after ``start`` and end by ``at`` and hold an alarm.

    Of all horizons, not of those on some grid: the measure of the moments whose horizon holds an alarm.
    """
    if len(times) == 0:
        return np.zeros(len(at))
    end = at - horizon
    gaps = np.minimum(np.diff(times, prepend=times[:1] - horizon), horizon)
    covered = np.concatenate([[0], np.cumsum(gaps)])

    def held(moment: Moments) -> NDArray[np.int64]:
        done = np.searchsorted(times, moment, side="right")
        following = np.minimum(done, len(times) - 1)
        begun = np.maximum(0, moment - (times[following] - gaps[following]))
        return covered[done] + np.where(done < len(times), begun, 0)

    length = np.maximum(end - start, 1)
    return np.where(end > start, (held(end) - held(np.minimum(start, end))) / length, 0.0)


def _runs(series: AlarmSeries) -> NDArray[np.int64]:
    """Return how many runs of one code have begun before each alarm, and in all."""
    begins = np.ones(len(series), dtype=np.int64)
    begins[1:] = series.codes[1:] != series.codes[:-1]
    return np.concatenate([[0], np.cumsum(begins)])


def _seen(times: Moments, start: Moments, end: Moments) -> NDArray[np.intp]:
    return np.searchsorted(times, end) - np.searchsorted(times, start)


def _share(held: NDArray[np.generic], known: NDArray[np.generic]) -> Reals:
    return np.asarray(held.sum(axis=1) / np.maximum(known.sum(axis=1), 1e-9))


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
