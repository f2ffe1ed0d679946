"""Learn arrow, dataset: a machine's event log becomes hourly windows to learn from and to be examined on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.features import counts_between
from forecasting.history import HistorySpec, Past, machine_history, own_history
from forecasting.series import AlarmSeries, micros
from forecasting.window import Span, WindowSpec, coverage, grid
from service.core.labels import held_between
from service.core.windows import Windows

STEP: Final = timedelta(hours=1)
COVERED: Final = 0.5  # below this share of heard evidence a live forecast says that it is warming up


def covered_moments(
    heard: Span,
    spec: WindowSpec,
    *,
    deaf: Iterable[Span] = (),
    step: timedelta = STEP,
    least: float = COVERED,
) -> list[datetime]:
    """Return the grid's moments with enough evidence behind them and a wholly heard horizon ahead.

    Nothing else decides: a silent window is as good as a busy one, because a live forecast cannot choose.
    """
    lost = list(deaf)
    last = heard[1] - spec.horizon
    return [
        at
        for at in grid(heard[0], last, step)
        if coverage(at, spec, heard=heard, deaf=lost) >= least
        and not any(start < at + spec.horizon and end > at for start, end in lost)
    ]


def windows(
    series: AlarmSeries,
    at: Sequence[datetime],
    spec: WindowSpec,
    *,
    since: datetime,
    history: HistorySpec | None = None,
    tracked: Iterable[int] | None = None,
) -> Windows:
    """Return what each moment's evidence and horizon held.

    With a ``history`` spec the windows carry own-history figures, of all codes in the log or only of the
    ``tracked`` ones; ``since`` is when the machine was first heard.
    """
    moments = np.array([micros(moment) for moment in at], dtype=np.int64)
    lookback, horizon = (span // timedelta(microseconds=1) for span in (spec.lookback, spec.horizon))
    codes = np.unique(series.codes)
    followed = codes if tracked is None else np.unique(np.array(list(tracked), dtype=np.int64))
    own = np.zeros((len(moments), 0, 0), dtype=np.float32)
    shared = np.zeros((len(moments), 0), dtype=np.float32)
    if history is not None:
        past = Past(moments, since=micros(since), horizon=spec.horizon, spec=history)
        own = own_history(series, past, followed)
        shared = machine_history(series, past)
    return Windows(
        at=moments,
        codes=codes,
        counts=counts_between(series, moments - lookback, moments, codes),
        outcomes=held_between(series, moments, moments + horizon, codes),
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
    count, reach = len(at), horizon // timedelta(microseconds=1)
    last = count - round(count * exam)
    middle = max(0, last - round(count * calibration))

    def before(start: int, stop: int) -> range:
        if stop == count:
            return range(start, stop)
        return range(start, max(start, int(np.searchsorted(at[:stop], at[stop] - reach, side="right"))))

    return Split(train=before(0, middle), calibration=before(middle, last), exam=range(last, count))
