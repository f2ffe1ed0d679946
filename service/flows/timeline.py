"""One machine's span as a chart draws it: its alarms, and what they make together."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forecasting.series import AlarmSeries
from service.core.alarm_figures import Observed
from service.core.chatter import Burst
from service.core.findings import MachineFlood, floods_found, standing_found
from service.core.history import GapRecord
from service.core.machine import Agent, Machine
from service.core.plant_time import Slices
from service.core.standing import LEAD, StandingAlarm
from service.flows.choice import chosen_span
from service.flows.ports import EventLog, Machines
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.micros import micros
from wire.moment import EARLIEST

USUAL_SPAN = timedelta(hours=28)
LONGEST_SPAN = timedelta(days=31)
MOST_ALARMS, MOST_MARKS = 5000, 1000


@dataclass(frozen=True)
class Timeline:
    """Everything in time order; where there was too much, ``truncated``, the newest of it.

    Shelved alarms are in it: they came.
    """

    machine: Machine
    agent: Agent | None
    since: datetime
    until: datetime
    count: int
    alarms: AlarmSeries
    truncated: bool
    floods: list[MachineFlood]
    bursts: list[Burst]
    standing: list[StandingAlarm]
    gaps: list[tuple[GapRecord, int]]


@dataclass(frozen=True)
class TimelineDesk:
    """Draws timelines."""

    machines: Machines
    log: EventLog
    clock: PlantClock

    def timeline(self, machine: MachineId, since: datetime | None, until: datetime | None) -> Timeline:
        """Return a machine's timeline, of the last 28 hours unless told otherwise."""
        known = self.machines.get(machine)
        start, end = chosen_span(since, until, now=self.clock.now(), usual=USUAL_SPAN, longest=LONGEST_SPAN)
        series = self.log.series(known, max(start - LEAD, EARLIEST), end)
        seen, span = Observed(series), Slices.whole(micros(start), micros(end))
        inside = series.between(start, end)
        bursts = [one for one in seen.bursts if one.last_us >= micros(start)]
        floods = floods_found(machine, seen, span, micros(end))
        gaps = self.log.newest_gaps(known, start, end, MOST_MARKS + 1)
        return Timeline(
            machine=known,
            agent=self.machines.agent(known),
            since=start,
            until=end,
            count=len(inside),
            alarms=AlarmSeries(inside.times[-MOST_ALARMS:], inside.codes[-MOST_ALARMS:]),
            truncated=len(inside) > MOST_ALARMS or max(len(bursts), len(floods), len(gaps)) > MOST_MARKS,
            floods=floods[-MOST_MARKS:],
            bursts=bursts[-MOST_MARKS:],
            standing=[one.run for one in standing_found(machine, seen, span)],
            gaps=gaps[-MOST_MARKS:],
        )
