"""Findings of a machine: floods, chattering codes, standing alarms."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from service.alarm_metrics.chatter import CodeRun
from service.alarm_metrics.flood import Flood
from service.alarm_metrics.models import MachineAlarms, alarms_per_day
from service.alarm_metrics.time_bins import TimeBins
from wire.identity import MachineId


@dataclass(frozen=True)
class MachineFlood:
    """A flood of a machine; ``over`` is false if it continues after the span."""

    machine: MachineId
    flood: Flood
    over: bool


@dataclass(frozen=True)
class MachineChatter:
    """A chattering code of a machine."""

    machine: MachineId
    code: int
    bursts: int
    alarms: int
    last_us: int


@dataclass(frozen=True)
class MachineStanding:
    """A standing alarm of a machine."""

    machine: MachineId
    run: CodeRun


@dataclass(frozen=True)
class CodeCount:
    """The alarms of a code, their share of all alarms, and the number of machines that raised it."""

    code: int
    alarms: int
    share: float
    machines: int


@dataclass(frozen=True)
class Bucket:
    """The alarms of a time bin, and the monitored time of all machines in it."""

    start: datetime
    end: datetime
    alarms: int
    monitored_us: int

    @property
    def alarms_per_day(self) -> float | None:
        return alarms_per_day(self.alarms, self.monitored_us)


def machine_floods(machine: MachineId, alarms: MachineAlarms, bins: TimeBins, until_us: int) -> list[MachineFlood]:
    """Return the floods that overlap the bins."""
    return [
        MachineFlood(machine, flood, flood.end_us <= until_us)
        for flood in alarms.floods
        if len(bins.clipped(flood.start_us, flood.end_us).starts)
    ]


def machine_chatter(machine: MachineId, alarms: MachineAlarms, bins: TimeBins) -> list[MachineChatter]:
    """Return the codes that chatter in the bins, with the number of bursts that start or end in them."""
    chatters = alarms.chatters & (bins.bin_index(alarms.series.times) >= 0)
    times, codes = alarms.series.times[chatters], alarms.series.codes[chatters]
    if not len(times):
        return []
    edges = np.array([(burst.first_us, burst.last_us, burst.code) for burst in alarms.bursts], dtype=np.int64)
    overlaps = (bins.bin_index(edges[:, 0]) >= 0) | (bins.bin_index(edges[:, 1]) >= 0)
    burst_codes = edges[overlaps, 2]
    chattering = []
    for code in np.unique(codes).tolist():
        code_times = times[codes == code]
        bursts = max(1, int((burst_codes == code).sum()))
        chattering.append(MachineChatter(machine, code, bursts, len(code_times), int(code_times[-1])))
    return chattering


def machine_standing(machine: MachineId, alarms: MachineAlarms, bins: TimeBins) -> list[MachineStanding]:
    """Return the standing alarms that were raised in the bins."""
    return [
        MachineStanding(machine, run)
        for run in alarms.standing
        if (bins.bin_index(alarms.times_of(run)) >= 0).any()
    ]
