"""One machine's span as a chart draws it: its alarms, and what they make together."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forecasting.series import AlarmSeries
from service.alarm_metrics.chatter import Burst
from service.alarm_metrics.findings import MachineFlood, floods_found, standing_found
from service.alarm_metrics.models import MachineAlarms
from service.alarm_metrics.standing import LEAD, StandingAlarm
from service.alarm_metrics.time_bins import TimeBins
from service.machines.event_store import EventStore
from service.machines.events import ExactGaps
from service.machines.models import Agent, Machine, MachineReader, chosen_span
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.timestamps import EARLIEST, to_us

DEFAULT_SPAN = timedelta(hours=28)
MAX_SPAN = timedelta(days=31)
MOST_ALARMS, MOST_MARKS = 5000, 1000
MOST_READ = 100_000  # alarms that floods, bursts and standing alarms are looked for in


@dataclass(frozen=True)
class Timeline:
    """Everything in time order; where there was too much, ``truncated``, the newest of it. ``count`` is of all.

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
    gaps: ExactGaps


@dataclass(frozen=True)
class TimelineService:
    """Draws timelines."""

    machines: MachineReader
    log: EventStore
    clock: PlantClock
    most_read: int = MOST_READ

    def timeline(self, machine: MachineId, since: datetime | None, until: datetime | None) -> Timeline:
        """Return a machine's timeline, of the last 28 hours unless told otherwise."""
        known = self.machines.get(machine)
        start, end = chosen_span(since, until, now=self.clock.now(), usual=DEFAULT_SPAN, longest=MAX_SPAN)
        series = self.log.newest(known, max(start - LEAD, EARLIEST), end, self.most_read + 1)
        too_many = len(series) > self.most_read
        if too_many:
            series = AlarmSeries(series.times[1:], series.codes[1:])
        seen, span = MachineAlarms(series), TimeBins.whole(to_us(start), to_us(end))
        inside = series.between(start, end)
        bursts = [one for one in seen.bursts if one.last_us >= to_us(start)]
        floods = floods_found(machine, seen, span, to_us(end))
        gaps = self.log.newest_gaps(known, start, end, MOST_MARKS + 1)
        return Timeline(
            machine=known,
            agent=self.machines.agent(known),
            since=start,
            until=end,
            count=self.log.count(known, start, end) if too_many else len(inside),
            alarms=AlarmSeries(inside.times[-MOST_ALARMS:], inside.codes[-MOST_ALARMS:]),
            truncated=too_many
            or len(inside) > MOST_ALARMS
            or max(len(bursts), len(floods), len(gaps)) > MOST_MARKS,
            floods=floods[-MOST_MARKS:],
            bursts=bursts[-MOST_MARKS:],
            standing=[one.run for one in standing_found(machine, seen, span)],
            gaps=gaps[-MOST_MARKS:],
        )
