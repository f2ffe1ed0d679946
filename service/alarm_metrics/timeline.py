"""Timeline of one machine: alarms with floods, chattering periods, standing alarms and gaps."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forecasting.series import AlarmSeries
from service.alarm_metrics.chatter import LEAD, CodeRun
from service.alarm_metrics.findings import MachineFlood, MachineStanding, machine_floods, machine_standing
from service.alarm_metrics.models import MachineAlarms
from service.alarm_metrics.time_bins import TimeBins
from service.machines.event_store import EventStore
from service.machines.events import ExactGaps
from service.machines.models import Agent, Machine, MachineReader, chosen_span
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.timestamps import EARLIEST, to_us

DEFAULT_SPAN = timedelta(hours=28)
MAX_SPAN = timedelta(days=31)
MAX_ALARMS, MAX_MARKS = 5000, 1000
MAX_READ = 100_000  # alarms in which floods, bursts and standing alarms are searched


@dataclass(frozen=True)
class Timeline:
    """Lists in time order, if ``truncated`` only the newest; ``count`` counts all alarms, also shelved ones."""

    machine: Machine
    agent: Agent | None
    since: datetime
    until: datetime
    count: int
    alarms: AlarmSeries
    truncated: bool
    floods: list[MachineFlood]
    bursts: list[CodeRun]
    standing: list[MachineStanding]
    gaps: ExactGaps


@dataclass(frozen=True)
class TimelineService:
    """Reads timelines."""

    machines: MachineReader
    events: EventStore
    clock: PlantClock
    max_read: int = MAX_READ

    def timeline(self, machine: MachineId, since: datetime | None, until: datetime | None) -> Timeline:
        """Return a machine's timeline, by default of the last 28 hours."""
        enrolled = self.machines.get(machine)
        start, end = chosen_span(since, until, now=self.clock.now(), usual=DEFAULT_SPAN, longest=MAX_SPAN)
        series = self.events.newest(enrolled, max(start - LEAD, EARLIEST), end, self.max_read + 1)
        too_many = len(series) > self.max_read
        if too_many:
            series = AlarmSeries(series.times[1:], series.codes[1:])
        alarms, span = MachineAlarms(series), TimeBins.whole(to_us(start), to_us(end))
        inside = series.between(start, end)
        bursts = [burst for burst in alarms.bursts if burst.last_us >= to_us(start)]
        floods = machine_floods(machine, alarms, span, to_us(end))
        gaps = self.events.newest_gaps(enrolled, start, end, MAX_MARKS + 1)
        return Timeline(
            machine=enrolled,
            agent=self.machines.agent(enrolled),
            since=start,
            until=end,
            count=self.events.count(enrolled, start, end) if too_many else len(inside),
            alarms=AlarmSeries(inside.times[-MAX_ALARMS:], inside.codes[-MAX_ALARMS:]),
            truncated=too_many or len(inside) > MAX_ALARMS or max(len(bursts), len(floods), len(gaps)) > MAX_MARKS,
            floods=floods[-MAX_MARKS:],
            bursts=bursts[-MAX_MARKS:],
            standing=machine_standing(machine, alarms, span),
            gaps=gaps[-MAX_MARKS:],
        )
