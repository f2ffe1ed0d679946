"""The base rates that stand beside forecasts, remembered for a plant day."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from forecasting.forecaster import Forecaster
from forecasting.network import Matrix
from service.forecasts.base_rate import LOOKBACK, base_rates
from service.machines.event_store import EventStore
from service.machines.models import Machine
from wire.identity import MachineId
from wire.timestamps import to_us

_RENEW_AFTER = timedelta(days=1)
_RENEW_LATE_AFTER = timedelta(minutes=15)  # a backlog arrives in many pieces


@dataclass
class BaseRates:
    """Counted over the hourly horizons of the last 90 days that had closed by then; renewed once a plant day."""

    log: EventStore
    _kept: dict[tuple[int, tuple[int, ...]], tuple[datetime, Matrix | None]] = field(default_factory=dict)
    _late: set[MachineId] = field(default_factory=set)

    def note_late(self, machines: Iterable[MachineId]) -> None:
        """Count again soon for machines that got events of an earlier time."""
        self._late.update(machines)

    def get(self, machine: Machine, at: datetime, model: Forecaster) -> Matrix | None:
        """Return the rates in the order of the model's targets, or None while no horizon has closed."""
        key = (machine.row_id, model.vocabulary.targets)
        kept = self._kept.get(key)
        renew_after = _RENEW_LATE_AFTER if machine.id in self._late else _RENEW_AFTER
        if kept and timedelta(0) <= at - kept[0] < renew_after and kept[1] is not None:
            return kept[1]
        self._late.discard(machine.id)
        rates = self._count(machine, at, model)
        if kept is None or at >= kept[0]:  # a look into the past must not replace the present
            self._kept[key] = (at, rates)
        return rates

    def _count(self, machine: Machine, at: datetime, model: Forecaster) -> Matrix | None:
        first = self.log.first_at(machine)
        if first is None:
            return None
        rates = base_rates(
            self.log.series(machine, at - LOOKBACK, at),
            to_us(first),
            np.array([to_us(at)], dtype=np.int64),
            model.spec.horizon // timedelta(microseconds=1),
            np.array(model.vocabulary.targets, dtype=np.int64),
        )
        return None if np.isnan(rates).any() else rates[0]
