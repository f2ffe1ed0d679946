"""How often a machine's past horizons held each target code: what a forecast is read against."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from forecasting.forecaster import Forecaster
from forecasting.network import Matrix
from forecasting.window import grid
from service.core.labels import held_between
from service.core.machine import Machine
from service.flows.ports import EventLog
from wire.micros import micros

_LOOK_BACK = timedelta(days=90)
_EVERY = timedelta(hours=1)
_RENEW_AFTER = timedelta(days=1)


@dataclass
class BaseRates:
    """Counted over the hourly horizons of the last 90 days that had closed by then; renewed once a plant day."""

    log: EventLog
    _kept: dict[tuple[int, tuple[int, ...]], tuple[datetime, Matrix | None]] = field(default_factory=dict)

    def of(self, machine: Machine, at: datetime, model: Forecaster) -> Matrix | None:
        """Return the rates in the order of the model's targets, or None while no horizon has closed."""
        key = (machine.row, model.vocabulary.targets)
        kept = self._kept.get(key)
        if kept and timedelta(0) <= at - kept[0] < _RENEW_AFTER and kept[1] is not None:
            return kept[1]
        rates = self._count(machine, at, model)
        if kept is None or at >= kept[0]:  # a look into the past must not replace the present
            self._kept[key] = (at, rates)
        return rates

    def _count(self, machine: Machine, at: datetime, model: Forecaster) -> Matrix | None:
        series = self.log.series(machine, at - _LOOK_BACK, at)
        first = self.log.first_at(machine)
        if first is None or len(series) == 0:
            return None
        start = max(first, at - _LOOK_BACK)
        closed = grid(start, at - model.spec.horizon, _EVERY)
        moments = np.array([micros(moment) for moment in closed], dtype=np.int64)
        if len(moments) == 0:
            return None
        horizon = model.spec.horizon // timedelta(microseconds=1)
        targets = np.array(model.vocabulary.targets, dtype=np.int64)
        held = held_between(series, moments, moments + horizon, targets)
        return np.asarray(held.mean(axis=0), dtype=np.float32)
