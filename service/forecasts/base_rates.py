"""The base rates that stand beside forecasts, remembered for a plant day."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forecasting.forecaster import Forecaster
from forecasting.network import Matrix
from forecasting.series import AlarmSeries
from service.forecasts.target_labels import label_matrix
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
        (found,) = self.log.evidence([machine], at - LOOKBACK, at)
        if found.first_at is None:
            return None
        rates = base_rates(
            found.series,
            to_us(found.first_at),
            np.array([to_us(at)], dtype=np.int64),
            model.spec.horizon // timedelta(microseconds=1),
            np.array(model.vocabulary.targets, dtype=np.int64),
        )
        return None if np.isnan(rates).any() else rates[0]


LOOKBACK: Final = timedelta(days=90)
_LOOKBACK_US: Final = LOOKBACK // timedelta(microseconds=1)
_HOUR_US: Final = timedelta(hours=1) // timedelta(microseconds=1)


def base_rates(
    series: AlarmSeries, first_us: int, at: NDArray[np.int64], horizon_us: int, codes: NDArray[np.int64]
) -> Matrix:
    """Return moments by codes: the share of the hourly horizons of the 90 days before that had closed by then.

    ``series`` must reach from 90 days before the first moment to the last; ``first_us`` is when the machine's
    history begins. A moment by which no horizon had closed, or before which 90 days were silent, is all NaN.
    """
    rates = np.full((len(at), len(codes)), np.nan, dtype=np.float32)
    if len(at) == 0:
        return rates
    earliest = at - _LOOKBACK_US
    first = -(-np.maximum(earliest, first_us) // _HOUR_US)  # the first full hour not before
    last = (at - horizon_us) // _HOUR_US
    spoke = np.searchsorted(series.times, at) > np.searchsorted(series.times, earliest)
    known = spoke & (last >= first)
    if not known.any():
        return rates
    first, last = first[known], last[known]
    origin = int(first.min())
    hours = np.arange(origin, int(last.max()) + 1, dtype=np.int64) * _HOUR_US
    held = label_matrix(series, hours, hours + horizon_us, codes)
    so_far = np.zeros((len(hours) + 1, len(codes)), dtype=np.int32)
    np.cumsum(held, axis=0, dtype=np.int32, out=so_far[1:])
    times_held = so_far[last - origin + 1] - so_far[first - origin]
    rates[known] = times_held / (last - first + 1)[:, None]
    return rates
