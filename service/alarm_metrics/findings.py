"""Findings of a machine: floods, chattering codes, standing alarms."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from service.alarm_metrics.models import MachineAlarms, alarms_per_day
from service.alarm_metrics.time_bins import TimeBins
from service.machines.catalogue import Catalogue
from wire.identity import MachineId
from wire.rest.alarm_metrics import ChatterView, FloodView, StandingAlarmView
from wire.timestamps import from_us


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


def machine_floods(
    machine: MachineId, alarms: MachineAlarms, bins: TimeBins, until_us: int, catalogue: Catalogue
) -> list[FloodView]:
    """Return the floods that overlap the bins."""
    return [
        FloodView(
            site=machine.site,
            machine=machine.machine,
            start=from_us(flood.start_us),
            end=from_us(flood.end_us) if flood.end_us <= until_us else None,
            alarms=flood.alarms,
            peak_10min=flood.peak,
            top_code=flood.top_code,
            top_text=catalogue[flood.top_code].text,
        )
        for flood in alarms.floods
        if len(bins.clipped(flood.start_us, flood.end_us).starts)
    ]


def machine_chatter(
    machine: MachineId, alarms: MachineAlarms, bins: TimeBins, catalogue: Catalogue
) -> list[ChatterView]:
    """Return the codes that chatter in the bins, with the number of bursts that start or end in them."""
    chatters = alarms.chatters & (bins.bin_index(alarms.series.times) >= 0)
    times, codes = alarms.series.times[chatters], alarms.series.codes[chatters]
    if not len(times):
        return []
    edges = np.array([(burst.first_us, burst.last_us, burst.code) for burst in alarms.bursts], dtype=np.int64)
    overlaps = (bins.bin_index(edges[:, 0]) >= 0) | (bins.bin_index(edges[:, 1]) >= 0)
    burst_codes = edges[overlaps, 2]
    return [
        ChatterView(
            site=machine.site,
            machine=machine.machine,
            code=code,
            text=catalogue[code].text,
            bursts=max(1, int((burst_codes == code).sum())),
            alarms=int((codes == code).sum()),
            last_at=from_us(int(times[codes == code][-1])),
        )
        for code in np.unique(codes).tolist()
    ]


def machine_standing(
    machine: MachineId, alarms: MachineAlarms, bins: TimeBins, catalogue: Catalogue
) -> list[StandingAlarmView]:
    """Return the standing alarms that were raised in the bins."""
    return [
        StandingAlarmView(
            site=machine.site,
            machine=machine.machine,
            code=run.code,
            text=catalogue[run.code].text,
            since=from_us(run.first_us),
            last_at=from_us(run.last_us),
            alarms=run.alarms,
        )
        for run in alarms.standing
        if (bins.bin_index(alarms.times_of(run)) >= 0).any()
    ]
