"""Cut a file of windows or of raw alarms into the training data of each machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.history import HistorySpec
from forecasting.series import AlarmSeries
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.errors import InputRejected
from service.learning.dataset import TrainingData, covered_moments, split, windows
from service.learning.windows import WindowSet
from wire.timestamps import from_us

EXAM: Final = 0.3  # the last share of a machine's windows, in time, that no model ever learns from
FEWEST: Final = 336  # training windows of two weeks; a machine with fewer keeps collecting


@dataclass(frozen=True, eq=False)
class ExperimentFleet:
    """All machines in the order in which they are learned, and the codes their models know."""

    machines: tuple[TrainingData, ...]
    vocabulary: Vocabulary
    skipped: tuple[str, ...]

    @property
    def has_history(self) -> bool:
        """Whether the windows were cut from an event log and so carry each code's own history."""
        return all(machine.holdout.context.shape[1] > 0 for machine in self.machines)


@dataclass(frozen=True)
class SplitConfig:
    """How to cut: which codes are forecast, and what must be in a window for it to count.

    ``min_in`` and ``min_out`` are the fewest raw alarms in evidence and horizon. The publisher asked for 20
    each; a filter on the horizon looks into the future and cannot be applied live.
    """

    targets: tuple[int, ...]
    machines: tuple[str, ...] | None
    calibration: float
    min_in: int = 0
    min_out: int = 0
    history: HistorySpec | None = None


def from_log(log: Mapping[str, AlarmSeries], cut: SplitConfig) -> ExperimentFleet:
    """SplitConfig hourly windows from each machine's raw alarms."""
    spec = WindowSpec()
    chosen = _chosen(log, cut.machines)
    parts = {}
    for name in chosen:
        series = log[name]
        observed = from_us(series.times[0]), from_us(series.times[-1])
        at = covered_moments(observed, spec)
        at = at[_busy(series, at, spec, cut)]
        far_known = np.isin(at, covered_moments(observed, replace(spec, horizon=spec.far)))
        whole = windows(
            series, at, spec, since=observed[0], history=cut.history, tracked=cut.targets, far_known=far_known
        )
        places = split(whole.at, spec.horizon, calibration=cut.calibration * (1 - EXAM), holdout=EXAM)
        parts[name] = TrainingData(name, *places.cut(whole, spec.far))
    return _fleet(parts, cut)


def from_windows(
    train: Mapping[str, WindowSet], holdout: Mapping[str, WindowSet], cut: SplitConfig
) -> ExperimentFleet:
    """Take windows that the publisher has already cut, filtered and split."""
    horizon = WindowSpec().horizon
    parts = {}
    for name in _chosen(train, cut.machines):
        if name not in holdout:
            raise InputRejected(f"Machine {name} has windows to learn from but none to be tested on.")
        places = split(train[name].at, horizon, calibration=cut.calibration, holdout=0.0)
        learned, checked = train[name].take(places.train), train[name].take(places.calibration)
        parts[name] = TrainingData(name, learned, checked, holdout[name])
    return _fleet(parts, cut)


def _busy(series: AlarmSeries, at: NDArray[np.int64], spec: WindowSpec, cut: SplitConfig) -> NDArray[np.bool_]:
    lookback, horizon = (span // timedelta(microseconds=1) for span in (spec.lookback, spec.horizon))
    start, now, end = (np.searchsorted(series.times, edge) for edge in (at - lookback, at, at + horizon))
    return (now - start >= cut.min_in) & (end - now >= cut.min_out)


def _chosen(known: Iterable[str], asked: tuple[str, ...] | None) -> list[str]:
    names = sorted(known, key=lambda name: (len(name), name))
    if asked is None:
        return names
    missing = sorted(set(asked) - set(names))
    if missing:
        raise InputRejected(f"The file has no machine {', '.join(missing)}; it has {', '.join(names)}.")
    return list(asked)


def _fleet(parts: Mapping[str, TrainingData], cut: SplitConfig) -> ExperimentFleet:
    learnable = {name: part for name, part in parts.items() if len(part.train) >= FEWEST and len(part.holdout) > 0}
    if cut.machines is not None and len(learnable) < len(parts):
        short = ", ".join(name for name in parts if name not in learnable)
        raise InputRejected(f"Machine {short} has fewer than {FEWEST} windows to learn from.")
    if not learnable:
        raise InputRejected(f"No machine has {FEWEST} windows to learn from.")
    codes = np.unique(np.concatenate([part.train.codes for part in learnable.values()]))
    if not set(cut.targets) & set(codes.tolist()):
        raise InputRejected(f"None of the target codes {', '.join(map(str, cut.targets))} occurs in the file.")
    return ExperimentFleet(
        machines=tuple(learnable.values()),
        vocabulary=Vocabulary(tuple(codes.tolist()), cut.targets),
        skipped=tuple(name for name in parts if name not in learnable),
    )
