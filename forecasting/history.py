"""Features beyond the paper: each code's own recent past, which normalised counts ignore.

Per code: when it last occurred, in time and in alarms since, how regularly it occurs, and whether the same horizon
of earlier days contained it. Per machine: how active it is. A code that never occurred has only zeros, so it needs
no entry in an old sample.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from forecasting.ragged import FleetSeries, RaggedTimes
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Columns

Features = NDArray[np.float32]
Reals = NDArray[np.float64]
Moments = NDArray[np.int64]
Indices = NDArray[np.intp]

Precision = TypeVar("Precision", bound=np.floating)

VERSION: Final = 1  # of these definitions; samples of another version cannot be mixed in
_DAY: Final = timedelta(days=1)


def _hours(*values: int) -> tuple[timedelta, ...]:
    return tuple(timedelta(hours=value) for value in values)


@dataclass(frozen=True)
class HistorySpec:
    """The definition of the features; nothing older than ``lookback`` is read.

    Recency decays to 1/e in each of ``decays`` (time) and ``alarms`` (number of other alarms). A machine's alarms
    are counted over ``spans``, horizons with a code over ``rates``. The same horizon is looked up ``days`` ago,
    and its share over ``weeks``, also weighted by ``fading`` per day. A machine silent for a ``pause`` has
    stopped.
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
        """How much of the event log the features need."""
        return max(*self.spans, *self.rates, *(day * _DAY for day in self.days), 7 * max(self.weeks) * _DAY)

    @property
    def width(self) -> int:
        """The number of features of one code at one moment."""
        return self.recent + len(self.rates) + len(self.days) + len(self.weeks) + 1

    @property
    def machine_width(self) -> int:
        """The number of features of a machine at one moment, which follow those of each code."""
        return len(self.decays) + len(self.spans) + len(self.rates) + len(self.days) + len(self.weeks) + 5

    @property
    def recent(self) -> int:
        """The number of recency features, which come first; the others describe regularity."""
        return len(self.decays) + len(self.alarms)


@dataclass(frozen=True)
class QueryPoints:
    """The moments to compute features for; ``since`` is the start of observation, for all or for each."""

    at: Moments
    since: int | Moments
    horizon: timedelta
    spec: HistorySpec

    @property
    def oldest(self) -> Moments:
        """The first moment that counts, per query point."""
        return self.at - _micros(self.spec.lookback)

    @cached_property
    def days(self) -> "_DailySlots":
        """The earlier days on which the same horizon is looked up."""
        return _DailySlots.before(self)


@dataclass(frozen=True, eq=False)
class _DailySlots:
    """Days by moments: the start of the same horizon on each earlier day, and whether the machine was observed.

    ``within`` are the weights of the days: for each of ``weeks``, and last for the decaying sum.
    """

    starts: Moments
    known: NDArray[np.bool_]
    within: Reals
    observed: Reals  # the weighted sums of the known days

    @classmethod
    def before(cls, past: QueryPoints) -> "_DailySlots":
        ago = np.arange(1, 7 * max(past.spec.weeks) + 1)
        starts = past.at - _micros(_DAY) * ago[:, None]
        known = starts >= past.since
        weights = [(ago <= 7 * week).astype(np.float64) for week in past.spec.weeks]
        within = np.stack([*weights, past.spec.fading ** (ago - 1)])
        return cls(starts, known, within, _summed(known, within))

    @cached_property
    def distinct(self) -> tuple[Moments, Indices]:
        """The distinct starts and their indices: hourly moments share all but the oldest."""
        distinct, indices = np.unique(self.starts, return_inverse=True)
        return distinct, indices.reshape(self.starts.shape)


@dataclass(frozen=True, eq=False)
class _Query:
    """Rows of questions: each about one track, as of its own moment."""

    tracks: RaggedTimes
    track: Indices
    past: QueryPoints

    @cached_property
    def last(self) -> tuple[Indices, Moments, NDArray[np.bool_]]:
        """Where the alarms before each moment end, when the last of them was, and whether that was recently."""
        now = self.tracks.count_before(self.track, self.past.at)
        if len(self.tracks.times) == 0:
            return now, self.past.at, np.zeros(len(now), dtype=np.bool_)
        last = self.tracks.times[np.maximum(now, 1) - 1]
        return now, last, (now > self.tracks.edges[self.track]) & (last >= self.past.oldest)

    def count_between(self, start: Moments, end: Moments) -> NDArray[np.intp]:
        """Return how many alarms lie in ``[start, end)``, for each row, or on many days for each."""
        return self.tracks.count_before(self.track, end) - self.tracks.count_before(self.track, start)

    def slot_had_alarm(self) -> NDArray[np.bool_]:
        """Return days by rows: whether the same horizon of each day before held an alarm."""
        days, horizon = self.past.days, _micros(self.past.horizon)
        if not self.tracks.is_single:
            return self.count_between(days.starts, days.starts + horizon) > 0
        starts, place = days.distinct
        return (self.count_between(starts, starts + horizon) > 0)[place]


def code_recency_features(series: AlarmSeries, past: QueryPoints, codes: NDArray[np.int64]) -> Features:
    """Return moments by codes by figures of each code's own past before each moment."""
    runs, now = _runs(FleetSeries.from_series([series])), np.searchsorted(series.times, past.at)
    by_code = np.empty((len(codes), len(past.at), past.spec.width), dtype=np.float32)
    for figures, code in zip(by_code, codes, strict=True):
        places = np.flatnonzero(series.codes == code)
        asked = _one_track(series.times[places], past)
        figures[:] = _recency_columns(asked, runs, places, now)
    return by_code.transpose(1, 0, 2)  # not copied: a year of hourly moments is a large table


def fleet_code_recency_features(fleet: FleetSeries, past: QueryPoints, columns: Columns) -> Features:
    """Return machines by codes by figures, as of one moment for each machine: all in one look."""
    machine = fleet.machine_index
    column = columns.index(fleet.codes)
    known = np.flatnonzero(column < columns.size)
    track = machine[known] * columns.size + column[known]
    places = known[np.argsort(track, kind="stable")]
    edges = np.concatenate([[0], np.cumsum(np.bincount(track, minlength=len(fleet) * columns.size))])
    each = _each(past, columns.size)
    asked = _Query(RaggedTimes(fleet.times[places], edges), np.arange(len(each.at)), each)
    now = np.repeat(fleet.tracks.count_before(np.arange(len(fleet)), past.at), columns.size)
    figures = _recency_columns(asked, _runs(fleet), places, now)
    return figures.reshape(len(fleet), columns.size, past.spec.width).astype(np.float32)


def machine_activity_features(series: AlarmSeries, past: QueryPoints) -> Features:
    """Return moments by figures of all codes' past together, and last how much of the lookback was heard."""
    return _activity_columns(_one_track(series.times, past))


def fleet_machine_activity_features(fleet: FleetSeries, past: QueryPoints) -> Features:
    """Return machines by figures, as of one moment for each machine."""
    return _activity_columns(_Query(fleet.tracks, np.arange(len(fleet)), past))


def append_machine_features(own: NDArray[Precision], machine: NDArray[Precision]) -> NDArray[Precision]:
    """Return moments by codes by figures: each code's own, followed by those of its machine."""
    shared = np.broadcast_to(machine[:, None, :], (*own.shape[:2], machine.shape[1]))
    return np.concatenate([own, shared], axis=2)


def as_trained(figures: Features) -> Features:
    """Round figures to the half precision in which windows have them, so that serving reads what training did."""
    return figures.astype(np.float16).astype(np.float32)


def _one_track(times: Moments, past: QueryPoints) -> _Query:
    edges = np.array([0, len(times)], dtype=np.intp)
    return _Query(RaggedTimes(times, edges), np.zeros(len(past.at), dtype=np.intp), past)


def _each(past: QueryPoints, codes: int) -> QueryPoints:
    """Ask about every code of a machine what is asked about the machine."""
    since = past.since if isinstance(past.since, int) else np.repeat(past.since, codes)
    return QueryPoints(np.repeat(past.at, codes), since, past.horizon, past.spec)


def _recency_columns(asked: _Query, runs: NDArray[np.int64], places: Indices, now: Indices) -> Reals:
    return np.stack(
        [*_decayed_counts(asked), *_time_since_last(asked, runs, places, now), *_same_time_of_day(asked)], axis=1
    )


def _activity_columns(asked: _Query) -> Features:
    past = asked.past
    counts = [np.log1p(asked.count_between(past.at - _micros(span), past.at)) for span in past.spec.spans]
    heard = np.clip((past.at - past.since) / _micros(past.spec.lookback), 0.0, 1.0)
    columns = [*_decayed_counts(asked), *counts, *_same_time_of_day(asked), *_hours_active(asked), heard]
    return np.stack(columns, axis=1).astype(np.float32)


def _decayed_counts(asked: _Query) -> list[Reals]:
    """How long ago the last alarm was: 1 for now, nought for never."""
    _, last, recent = asked.last
    age = np.where(recent, asked.past.at - last, np.inf)
    return [np.exp(-age / _micros(decay)) for decay in asked.past.spec.decays]


def _time_since_last(asked: _Query, runs: NDArray[np.int64], places: Indices, now: Indices) -> list[Reals]:
    """How many other alarms have passed since the code was last seen, repeats collapsed.

    ``places`` are where the tracks' alarms stand among all alarms, ``now`` where each moment does.
    """
    end, _, recent = asked.last
    after = places[np.maximum(end, 1) - 1] + 1 if len(places) else now
    passed = np.where(recent, runs[now] - runs[after], np.inf)
    return [np.exp(-passed / number) for number in asked.past.spec.alarms]


def _same_time_of_day(asked: _Query) -> list[Reals]:
    """How often horizons held an alarm, and whether the same horizon of earlier days did."""
    past, spec, days = asked.past, asked.past.spec, asked.past.days
    starts = [np.maximum(past.at - _micros(span), past.since) for span in spec.rates]
    held = asked.slot_had_alarm()
    shares = _summed(held & days.known, days.within) / np.maximum(days.observed, 1e-9)
    return [*_rates(asked, starts), *(held[day - 1].astype(np.float64) for day in spec.days), *shares]


def _hours_active(asked: _Query) -> list[Reals]:
    """How long and how busily the machine has been working since its last pause; nought while it pauses."""
    past, times, pause = asked.past, asked.tracks.times, _micros(asked.past.spec.pause)
    if len(times) == 0:
        return [np.zeros(len(past.at))] * 3
    end, last, recent = asked.last
    works = recent & (past.at - last < pause)
    resumed = np.flatnonzero(asked.tracks.inter_arrival(first=pause + 1) > pause)
    first = resumed[np.maximum(np.searchsorted(resumed, end), 1) - 1]
    first = np.maximum(first, asked.tracks.count_before(asked.track, past.oldest))
    hours = np.where(works, past.at - times[np.minimum(first, len(times) - 1)], 0) / 3.6e9
    return [
        np.where(works, np.exp(-hours / 8), 0.0),
        np.log1p(hours),
        np.log1p(np.where(works, end - first, 0)),
    ]


def _rates(asked: _Query, starts: list[Moments]) -> list[Reals]:
    """Return the share of all horizons that begin at or after each start and end by ``at`` and hold an alarm.

    Of all horizons, not of those on some grid: the measure of the moments whose horizon holds an alarm.
    """
    tracks, track, horizon = asked.tracks, asked.track, _micros(asked.past.horizon)
    times, end = tracks.times, asked.past.at - horizon
    if len(times) == 0:
        return [np.zeros(len(end))] * len(starts)
    gaps = np.minimum(tracks.inter_arrival(first=horizon), horizon)
    covered = np.concatenate([[0], np.cumsum(gaps)])

    def held(moment: Moments) -> NDArray[np.int64]:
        done = tracks.count_before(track, moment + 1)
        following = np.minimum(done, len(times) - 1)
        begun = np.maximum(0, moment - (times[following] - gaps[following]))
        return covered[done] + np.where(done < tracks.edges[track + 1], begun, 0)

    until = held(end)
    return [
        np.where(end > start, (until - held(np.minimum(start, end))) / np.maximum(end - start, 1), 0.0)
        for start in starts
    ]


def _runs(fleet: FleetSeries) -> NDArray[np.int64]:
    """Return how many runs of one code have begun before each alarm, and in all."""
    return np.concatenate([[0], np.cumsum(fleet.run_starts)])


def _summed(days: NDArray[np.bool_], within: Reals) -> Reals:
    """Return days by moments summed up; day after day, so that a moment's sum is the same whoever asks beside."""
    sums = np.zeros((len(within), days.shape[1]))
    for day, weights in zip(days, within.T, strict=True):
        sums += weights[:, None] * day
    return sums


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
