"""Cut a machine's event log into hourly windows, and choose which codes are learned.

Every learned code costs memory and time in each training run. Codes of the catalogue always count. The others are
limited, because a defective or hostile machine can raise any number of them.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.features import counts_between, runs_between
from forecasting.history import HistorySpec, QueryPoints, code_recency_features, machine_activity_features
from forecasting.series import AlarmSeries, to_us
from forecasting.window import Span, WindowSpec, merge_spans
from service.forecasts.target_labels import label_matrix
from service.learning.windows import FAR, MAIN, NEAR, UNKNOWN, WindowSet

Moments = NDArray[np.int64]

OTHER: Final = -1  # stands in windows for all codes that are not learned; no alarm has it
STEP: Final = timedelta(hours=1)
MIN_COVERAGE: Final = 0.5  # with less of its input observed, a live forecast is marked as warming up
_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, eq=False)
class TrainingData:
    """One machine's windows, split in time: to train, to calibrate, and for the holdout set.

    ``unlisted`` are its learned codes outside of the catalogue, best first; ``left_out`` codes are not learned.
    """

    machine: str
    train: WindowSet
    calibration: WindowSet
    holdout: WindowSet
    unlisted: tuple[int, ...] = ()
    left_out: int = 0
    fingerprint: str = ""


@dataclass(frozen=True)
class CodeLimits:
    """How many codes outside of the catalogue are learned.

    Of one machine at most ``per_machine``: if it has more, those seen on ``days`` days or more, the ones seen on
    most days first. A model has at most ``in_model`` in all.
    """

    per_machine: int = 500
    in_model: int = 5000
    days: int = 3


@dataclass(frozen=True, eq=False)
class ChosenCodes:
    """The codes of a machine that are learned: all (ascending), and those outside of the catalogue, best first."""

    codes: NDArray[np.int64]
    unlisted: tuple[int, ...]
    left_out: int


def choose_codes(series: AlarmSeries, listed: Collection[int], limits: CodeLimits) -> ChosenCodes:
    """Choose which codes of a series are learned; ``listed`` are those of the catalogue."""
    every = np.unique(series.codes)
    unlisted = np.setdiff1d(every, np.fromiter(listed, dtype=np.int64, count=len(listed)))
    days = _days_seen(series, unlisted)
    best = unlisted[np.lexsort((unlisted, -days))]
    if len(unlisted) > limits.per_machine:
        best = best[: min(limits.per_machine, int(np.count_nonzero(days >= limits.days)))]
    kept = np.union1d(np.setdiff1d(every, unlisted), best)
    return ChosenCodes(kept, tuple(best.tolist()), len(every) - len(kept))


def _days_seen(series: AlarmSeries, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of UTC days with each code."""
    relevant = np.isin(series.codes, codes)
    pairs = np.unique(np.stack([series.codes[relevant], series.times[relevant] // _DAY_US]), axis=1)
    return np.asarray(np.bincount(np.searchsorted(codes, pairs[0]), minlength=len(codes)), dtype=np.int64)


def covered_moments(
    observed: Span,
    spec: WindowSpec,
    *,
    unobserved: Iterable[Span] = (),
    step: timedelta = STEP,
    min_coverage: float = MIN_COVERAGE,
) -> Moments:
    """Return the grid times with enough observed input before them and a fully observed horizon after them.

    Nothing else decides: windows without alarms count too, because a live forecast cannot choose. The rule is that
    of ``forecasting.window.coverage``, for all times at once.
    """
    first, last = to_us(observed[0]), to_us(observed[1])
    lookback, horizon, every = (_us(span) for span in (spec.lookback, spec.horizon, step))
    at = np.arange(-(-first // every) * every, last - horizon + 1, every)
    gaps = np.array([(to_us(a), to_us(b)) for a, b in merge_spans(unobserved)], dtype=np.int64).reshape(-1, 2)
    begins, ends = gaps[:, 0], gaps[:, 1]
    total = np.concatenate([[0], np.cumsum(ends - begins)])

    def gap_before(moment: Moments) -> Moments:
        begun = np.searchsorted(begins, moment)
        to_come = np.maximum(np.concatenate([[0], ends])[begun] - moment, 0)
        return total[begun] - np.where(begun > 0, to_come, 0)

    since = np.maximum(at - lookback, first)
    covered = (at - since - gap_before(at) + gap_before(since)) / lookback >= min_coverage
    ahead = np.searchsorted(begins, at + horizon) == np.searchsorted(ends, at, side="right")
    return np.asarray(at[covered & ahead])


def windows(
    series: AlarmSeries,
    at: Moments,
    spec: WindowSpec,
    *,
    since: datetime,
    history: HistorySpec | None = None,
    tracked: Iterable[int] | None = None,
    chosen: NDArray[np.int64] | None = None,
    far_known: NDArray[np.bool_] | None = None,
) -> WindowSet:
    """Return the input and the outcome of the window at each time.

    With a ``history`` spec the windows have recency features, of all codes in the log or only of the ``tracked``
    ones; the machine is observed since ``since``. If only some codes are ``chosen`` (ascending), all others are
    counted together as ``OTHER``, so that the shares of the input do not change. ``far_known`` are the windows
    whose far horizon was fully observed; without it nothing is said of the near and far horizons.
    """
    lookback, horizon = _us(spec.lookback), _us(spec.horizon)
    all_codes = np.unique(series.codes)
    codes = all_codes if chosen is None else chosen
    followed = codes if tracked is None else np.unique(np.array(list(tracked), dtype=np.int64))
    own = np.zeros((len(at), 0, 0), dtype=np.float16)
    shared = np.zeros((len(at), 0), dtype=np.float16)
    if history is not None:
        past = QueryPoints(at, since=to_us(since), horizon=spec.horizon, spec=history)
        own = code_recency_features(series, past, followed).astype(np.float16)
        shared = machine_activity_features(series, past).astype(np.float16)
    counts = counts_between(series, at - lookback, at, codes)
    outcomes = label_matrix(series, at, at + horizon, codes)
    within = None
    if far_known is not None:
        near, far = (label_matrix(series, at, at + _us(span), codes) for span in (spec.near, spec.far))
        within = np.where(near, NEAR, np.where(outcomes, MAIN, np.where(far, FAR, 0))).astype(np.uint8)
        within[~far_known[:, None] & ~outcomes] = UNKNOWN
    if len(codes) < len(all_codes):
        others = runs_between(series, at - lookback, at)[:, None] - counts.sum(
            axis=1, keepdims=True, dtype=np.int32
        )
        codes = np.concatenate([[OTHER], codes])  # below every real code, so the order stays ascending
        counts = np.concatenate([others, counts], axis=1)
        outcomes = np.concatenate([np.zeros((len(at), 1), dtype=np.bool_), outcomes], axis=1)
        within = within if within is None else np.pad(within, ((0, 0), (1, 0)))
    return WindowSet(
        at=at,
        codes=codes,
        counts=counts,
        outcomes=outcomes,
        tracked=followed if history is not None else codes[:0],
        history=own,
        context=shared,
        within=within,
    )


@dataclass(frozen=True)
class Split:
    """Indices of the windows to train, to calibrate and to evaluate with, in time order."""

    train: range
    calibration: range
    holdout: range

    def cut(self, whole: WindowSet, far: timedelta) -> tuple[WindowSet, WindowSet, WindowSet]:
        """Return the three parts; what a far horizon holds of the next part is unknown."""
        parts = (self.train, self.calibration, self.holdout)
        starts = [int(whole.at[part.start]) if len(part) else None for part in parts]
        ends = [starts[1] or starts[2], starts[2], None]
        train, calibration, holdout = (
            _forget_far(whole.take(part), end, far) for part, end in zip(parts, ends, strict=True)
        )
        return train, calibration, holdout


def split(at: NDArray[np.int64], horizon: timedelta, *, calibration: float, holdout: float) -> Split:
    """Split windows in time: the last share is the holdout set, the one before it calibration, the rest training.

    Between parts, windows whose horizon reaches into the next part are left out: their outcome would leak.
    """
    if calibration < 0 or holdout < 0 or calibration + holdout > 1:
        raise ValueError("Shares of windows must not be negative nor exceed the whole.")
    if np.any(np.diff(at) < 0):
        raise ValueError("Windows must be in time order to be cut in time.")
    count, reach = len(at), _us(horizon)
    last = count - round(count * holdout)
    middle = max(0, last - round(count * calibration))

    def before(start: int, stop: int) -> range:
        if stop == count:
            return range(start, stop)
        return range(start, max(start, int(np.searchsorted(at[:stop], at[stop] - reach, side="right"))))

    return Split(train=before(0, middle), calibration=before(middle, last), holdout=range(last, count))


def _forget_far(part: WindowSet, end: int | None, far: timedelta) -> WindowSet:
    if part.within is None or end is None:
        return part
    reaches = (part.at + _us(far) > end)[:, None] & (part.within < MAIN)
    return replace(part, within=np.where(reaches, UNKNOWN, part.within).astype(np.uint8))


def _us(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
