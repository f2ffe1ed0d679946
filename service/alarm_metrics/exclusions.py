"""Alarms that figures leave out, because somebody shelved them; features never come here."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from forecasting.series import AlarmSeries
from wire.identity import MachineId


class ExcludedSpan(NamedTuple):
    """A code of a machine that does not count in ``[start_us, end_us)``."""

    machine: MachineId
    code: int
    start_us: int
    end_us: int


def exclude(series: AlarmSeries, machine: MachineId, spans: Iterable[ExcludedSpan]) -> AlarmSeries:
    """Return a machine's alarms without those that are left out."""
    keep = np.ones(len(series), dtype=np.bool_)
    for span in spans:
        if span.machine == machine:
            first, last = np.searchsorted(series.times, [span.start_us, span.end_us])
            keep[first:last] &= series.codes[first:last] != span.code
    return series if keep.all() else AlarmSeries(series.times[keep], series.codes[keep])
