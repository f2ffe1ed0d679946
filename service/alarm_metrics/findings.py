"""What stands out in a machine's alarms, one by one: its floods, its chattering codes, its standing alarms."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from service.alarm_metrics.flood import Flood
from service.alarm_metrics.models import MachineAlarms, alarms_per_day
from service.alarm_metrics.standing import StandingAlarm
from service.alarm_metrics.time_bins import TimeBins
from wire.identity import MachineId


@dataclass(frozen=True)
class MachineFlood:
    """A machine's flood; ``over`` is false while it lasts beyond what is known."""

    machine: MachineId
    flood: Flood
    over: bool


@dataclass(frozen=True)
class MachineChatter:
    """A machine's code that chatters."""

    machine: MachineId
    code: int
    bursts: int
    alarms: int
    last_us: int


@dataclass(frozen=True)
class MachineStanding:
    """A machine's standing alarm."""

    machine: MachineId
    run: StandingAlarm


@dataclass(frozen=True)
class CodeCount:
    """How often a code came, which share of all alarms that is, and from how many machines."""

    code: int
    alarms: int
    share: float
    machines: int


@dataclass(frozen=True)
class Bucket:
    """The alarms of a stretch of time, and how long machines were watched in it."""

    start: datetime
    end: datetime
    alarms: int
    watched_us: int

    @property
    def alarms_a_day(self) -> float | None:
        """Alarms a day and machine, or None where too little was watched."""
        return alarms_per_day(self.alarms, self.watched_us)


def floods_found(
    machine: MachineId, seen: MachineAlarms, slices: TimeBins, known_until_us: int
) -> list[MachineFlood]:
    """Return the floods that touch the slices."""
    return [
        MachineFlood(machine, flood, flood.end_us <= known_until_us)
        for flood in seen.floods
        if len(slices.clipped(flood.start_us, flood.end_us).starts)
    ]


def chatter_found(machine: MachineId, seen: MachineAlarms, slices: TimeBins) -> list[MachineChatter]:
    """Return the codes that chatter in the slices, with the bursts of which an end lies in them."""
    loud = seen.chatters & (slices.bin_index(seen.series.times) >= 0)
    times, codes = seen.series.times[loud], seen.series.codes[loud]
    if not len(times):
        return []
    edges = np.array([(one.first_us, one.last_us, one.code) for one in seen.bursts], dtype=np.int64)
    touching = (slices.bin_index(edges[:, 0]) >= 0) | (slices.bin_index(edges[:, 1]) >= 0)
    of_bursts = edges[touching, 2]
    found = []
    for code in np.unique(codes).tolist():
        own = times[codes == code]
        count = max(1, int((of_bursts == code).sum()))
        found.append(MachineChatter(machine, code, count, len(own), int(own[-1])))
    return found


def standing_found(machine: MachineId, seen: MachineAlarms, slices: TimeBins) -> list[MachineStanding]:
    """Return the standing alarms that were raised in the slices."""
    return [
        MachineStanding(machine, run)
        for run in seen.standing
        if (slices.bin_index(seen.moments_of(run)) >= 0).any()
    ]
