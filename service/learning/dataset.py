"""Learn arrow, dataset: a machine's event log becomes hourly windows to learn from and to be examined on."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.features import counts_between, runs_between
from forecasting.history import HistorySpec, QueryPoints, code_recency_features, machine_activity_features
from forecasting.series import AlarmSeries, to_us
from forecasting.window import Span, WindowSpec, merge_spans
from service.forecasts.target_labels import label_matrix
from service.learning.code_limits import OTHER
from service.learning.windows import WindowSet

Moments = NDArray[np.int64]

STEP: Final = timedelta(hours=1)
COVERED: Final = 0.5  # below this share of heard evidence a live forecast says that it is warming up


def covered_moments(
    heard: Span,
    spec: WindowSpec,
    *,
    deaf: Iterable[Span] = (),
    step: timedelta = STEP,
    least: float = COVERED,
) -> Moments:
    """Return the grid's moments with enough evidence behind them and a wholly heard horizon ahead.

    Nothing else decides: a silent window is as good as a busy one, because a live forecast cannot choose. The
    evidence is ``forecasting.window.coverage``, of all moments at once.
    """
    first, last = to_us(heard[0]), to_us(heard[1])
    lookback, horizon, every = (_micros(span) for span in (spec.lookback, spec.horizon, step))
    at = np.arange(-(-first // every) * every, last - horizon + 1, every)
    lost = np.array([(to_us(a), to_us(b)) for a, b in merge_spans(deaf)], dtype=np.int64).reshape(-1, 2)
    begins, ends = lost[:, 0], lost[:, 1]
    whole = np.concatenate([[0], np.cumsum(ends - begins)])

    def lost_before(moment: Moments) -> Moments:
        begun = np.searchsorted(begins, moment)
        to_come = np.maximum(np.concatenate([[0], ends])[begun] - moment, 0)
        return whole[begun] - np.where(begun > 0, to_come, 0)

    since = np.maximum(at - lookback, first)
    covered = (at - since - lost_before(at) + lost_before(since)) / lookback >= least
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
) -> WindowSet:
    """Return what each moment's evidence and horizon held.

    With a ``history`` spec the windows carry own-history figures, of all codes in the log or only of the
    ``tracked`` ones; ``since`` is when the machine was first heard. If only some codes are ``chosen`` (ascending),
    the evidence of all others is counted together as ``OTHER``, so that shares of the evidence stay what they are.
    """
    lookback, horizon = _micros(spec.lookback), _micros(spec.horizon)
    every = np.unique(series.codes)
    codes = every if chosen is None else chosen
    followed = codes if tracked is None else np.unique(np.array(list(tracked), dtype=np.int64))
    own = np.zeros((len(at), 0, 0), dtype=np.float32)
    shared = np.zeros((len(at), 0), dtype=np.float32)
    if history is not None:
        past = QueryPoints(at, since=to_us(since), horizon=spec.horizon, spec=history)
        own = code_recency_features(series, past, followed)
        shared = machine_activity_features(series, past)
    counts = counts_between(series, at - lookback, at, codes)
    outcomes = label_matrix(series, at, at + horizon, codes)
    if len(codes) < len(every):
        others = runs_between(series, at - lookback, at)[:, None] - counts.sum(
            axis=1, keepdims=True, dtype=np.int32
        )
        codes = np.concatenate([[OTHER], codes])  # below every code there is, so they still ascend
        counts = np.concatenate([others, counts], axis=1)
        outcomes = np.concatenate([np.zeros((len(at), 1), dtype=np.bool_), outcomes], axis=1)
    return WindowSet(
        at=at,
        codes=codes,
        counts=counts,
        outcomes=outcomes,
        tracked=followed if history is not None else codes[:0],
        history=own,
        context=shared,
    )


@dataclass(frozen=True)
class Split:
    """Positions of the windows to learn from, to calibrate on and to be examined with, in time order."""

    train: range
    calibration: range
    exam: range


def split(at: NDArray[np.int64], horizon: timedelta, *, calibration: float, exam: float) -> Split:
    """Cut windows in time: the last share is the exam, the one before it calibration, the rest training.

    Between parts, windows whose horizon reaches into the next part are left out: their outcome is the next
    part's evidence of how the machine behaves, and would leak.
    """
    if calibration < 0 or exam < 0 or calibration + exam > 1:
        raise ValueError("Shares of windows must not be negative nor exceed the whole.")
    if np.any(np.diff(at) < 0):
        raise ValueError("Windows must be in time order to be cut in time.")
    count, reach = len(at), _micros(horizon)
    last = count - round(count * exam)
    middle = max(0, last - round(count * calibration))

    def before(start: int, stop: int) -> range:
        if stop == count:
            return range(start, stop)
        return range(start, max(start, int(np.searchsorted(at[:stop], at[stop] - reach, side="right"))))

    return Split(train=before(0, middle), calibration=before(middle, last), exam=range(last, count))


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
