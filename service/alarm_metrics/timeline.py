"""Timeline of one machine: alarms with floods, chattering periods, standing alarms and gaps."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forecasting.series import AlarmSeries
from service.alarm_metrics.activity import Activity, active_views, read_activity
from service.alarm_metrics.chatter import LEAD, CodeRun
from service.alarm_metrics.findings import machine_floods, machine_standing
from service.alarm_metrics.models import MachineAlarms
from service.alarm_metrics.time_bins import TimeBins
from service.machines.catalogue import Catalogue
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.models import MachineReader, chosen_span
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.rest.alarm_metrics import ActiveAlarmView
from wire.rest.timelines import BurstView, TimelineAlarm, TimelineView
from wire.timestamps import EARLIEST, from_us, to_us

DEFAULT_SPAN = timedelta(hours=28)
MAX_SPAN = timedelta(days=31)
MAX_ALARMS, MAX_MARKS = 5000, 1000
MAX_READ = 100_000  # alarms in which floods, bursts and standing alarms are searched


@dataclass(frozen=True)
class TimelineService:
    """Reads timelines."""

    machines: MachineReader
    events: EventStore
    catalogue: CatalogueStore
    clock: PlantClock
    max_read: int = MAX_READ

    def timeline(self, machine: MachineId, since: datetime | None, until: datetime | None) -> TimelineView:
        """Return a machine's timeline, by default of the last 28 hours."""
        enrolled, catalogue = self.machines.get(machine), self.catalogue.entries()
        agent = self.machines.agent(enrolled)
        start, end = chosen_span(since, until, now=self.clock.now(), usual=DEFAULT_SPAN, longest=MAX_SPAN)
        series = self.events.newest(enrolled, max(start - LEAD, EARLIEST), end, self.max_read + 1)
        too_many = len(series) > self.max_read
        if too_many:
            series = AlarmSeries(series.times[1:], series.codes[1:])
        alarms, span = MachineAlarms(series), TimeBins.whole(to_us(start), to_us(end))
        inside = series.between(start, end)
        bursts = [_burst_view(burst, catalogue) for burst in alarms.bursts if burst.last_us >= to_us(start)]
        floods = machine_floods(machine, alarms, span, to_us(end), catalogue)
        seen = [at for at in (self.events.last_at(enrolled), agent.last_seen_at if agent else None) if at]
        known_until = max(seen, default=end)
        activity = read_activity(self.events, enrolled, start, end, known_until=known_until, most=self.max_read)
        gaps = self.events.newest_gaps(enrolled, start, end, MAX_MARKS + 1)
        return TimelineView(
            site=machine.site,
            machine=machine.machine,
            name=enrolled.name,
            time_zone=enrolled.time_zone,
            since=start,
            until=end,
            count=self.events.count(enrolled, start, end) if too_many else len(inside),
            alarms=_alarm_views(inside, catalogue, activity),
            earlier=_earlier(machine, activity, span, catalogue),
            truncated=too_many or len(inside) > MAX_ALARMS or max(len(bursts), len(floods), len(gaps)) > MAX_MARKS,
            floods=floods[-MAX_MARKS:],
            chatter=bursts[-MAX_MARKS:],
            standing=machine_standing(machine, alarms, span, catalogue),
            gaps=gaps[-MAX_MARKS:],
            last_seen_at=agent.last_seen_at if agent else None,
            online=agent.online if agent else None,
            silent_since=None,
        )


def _alarm_views(series: AlarmSeries, catalogue: Catalogue, activity: Activity) -> list[TimelineAlarm]:
    newest = AlarmSeries(series.times[-MAX_ALARMS:], series.codes[-MAX_ALARMS:])
    ends, active = [-1] * len(newest), [False] * len(newest)
    if activity.alarms is not None:
        ends, active = (known.tolist() for known in activity.alarms.of_alarms(newest))
    rows = zip(newest.times.tolist(), newest.codes.tolist(), ends, active, strict=True)
    return [
        TimelineAlarm(
            at=from_us(at_us),
            code=code,
            text=catalogue[code].text,
            severity=catalogue[code].severity,
            until=None if end < 0 else from_us(end),
            active=is_active,
        )
        for at_us, code, end, is_active in rows
    ]


def _earlier(
    machine: MachineId, activity: Activity, span: TimeBins, catalogue: Catalogue
) -> list[ActiveAlarmView]:
    if activity.alarms is None:
        return []
    before = activity.alarms.starts < span.starts[0]
    found = activity.alarms.where(before & (activity.alarms.overlap(span) > 0))
    views = active_views(machine, found, catalogue)
    return sorted(views, key=lambda one: (-one.seconds, one.code))[:MAX_MARKS]


def _burst_view(burst: CodeRun, catalogue: Catalogue) -> BurstView:
    start, end = from_us(burst.first_us), from_us(burst.last_us)
    text = catalogue[burst.code].text
    return BurstView(code=burst.code, text=text, start=start, end=end, alarms=burst.alarms)
