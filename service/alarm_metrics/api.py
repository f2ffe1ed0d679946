"""Routes of alarm metrics (ISA-18.2, EEMUA 191) and timelines."""

from collections.abc import Callable, Iterable
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from service.alarm_metrics.findings import CodeCount, MachineChatter, MachineFlood, MachineStanding
from service.alarm_metrics.models import ACCEPTABLE_UP_TO, EXCESSIVE_FROM, AlarmCounts
from service.alarm_metrics.service import AlarmMetrics, AlarmMetricsQuery, AlarmMetricsService, GroupKey
from service.alarm_metrics.timeline import Timeline, TimelineService
from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.api import gap_view
from service.machines.catalogue import CatalogueEntry, unknown_code
from service.machines.catalogue_store import CatalogueStore
from service.machines.silence import SilentMachine
from wire.enums import AlarmMetricsGrouping
from wire.identity import ID_PATTERN, MachineId
from wire.rest.alarm_metrics import (
    AlarmMetricsCounts,
    AlarmMetricsReport,
    AlarmMetricsRow,
    AlarmMetricsView,
    BandLimits,
    BucketView,
    ChatterView,
    FloodView,
    RateView,
    ShiftView,
    StandingAlarmView,
    TopCodeView,
)
from wire.rest.timelines import BurstView, TimelineAlarm, TimelineView
from wire.timestamps import UtcDatetime, from_us

TOP = 10
_MAX_FINDINGS, _MAX_ROWS = 100, 1000
_DIGITS = 4
_DAY_US = 86_400_000_000

Entries = dict[int, CatalogueEntry]
SiteFilter = Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this site.")]
MachineFilter = Annotated[str | None, Query(pattern=ID_PATTERN, description="Only of this machine; needs `site`.")]


def parse_query(
    site: SiteFilter = None,
    machine: MachineFilter = None,
    since: Annotated[
        UtcDatetime | None, Query(description="Start (inclusive); default 7 days before `until`.")
    ] = None,
    until: Annotated[
        UtcDatetime | None, Query(description="End (exclusive), at most 92 days after `since`; default now.")
    ] = None,
    shift: Annotated[
        str | None, Query(max_length=32, description="Only within this shift, in plant time.", examples=["early"])
    ] = None,
    by: Annotated[AlarmMetricsGrouping, Query(description="Group rows by.")] = AlarmMetricsGrouping.MACHINE,
) -> AlarmMetricsQuery:
    """Return the query of a request."""
    return AlarmMetricsQuery(by, site, machine, since, until, shift)


MetricsQuery = Annotated[AlarmMetricsQuery, Depends(parse_query)]


def router(
    *,
    metrics: AlarmMetricsService,
    timelines: TimelineService,
    catalogue: CatalogueStore,
    silent_machines: Callable[[], Iterable[SilentMachine]],
) -> APIRouter:
    """Return the routes of alarm metrics and timelines."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/alarm-metrics", tags=["alarm metrics"], responses=responses(404, 422, 503))
    def get_alarm_metrics(query: MetricsQuery) -> AlarmMetricsReport:
        """Return alarm rates in the bands of ISA-18.2, floods, chattering and standing alarms.

        A flood starts when more than 10 alarms of a machine came within ten minutes and ends when fewer than 5
        did; chattering is three or more alarms of one code within a minute. Machines do not report when an alarm
        clears, so *standing* alarms replace stale ones: raised for more than 24 hours without a pause of more
        than an hour. Days, hours and shifts are in the time zone of each machine.
        """
        shifts = [ShiftView(shift=name, start=f"{at:%H:%M}") for name, at in metrics.shifts.items()]
        return _report(metrics.compute(query), query, shifts, catalogue.entries())

    @routes.get("/machines/{site}/{machine}/timeline", tags=["machines"], responses=responses(404, 422))
    def get_timeline(
        site: Site,
        machine: MachineName,
        since: Annotated[
            UtcDatetime | None, Query(description="Start (inclusive); default 28 hours before `until`.")
        ] = None,
        until: Annotated[
            UtcDatetime | None, Query(description="End (exclusive), at most 31 days after `since`; default now.")
        ] = None,
    ) -> TimelineView:
        """Return alarms, floods, chattering periods, standing alarms and gaps of a machine, in time order."""
        timeline = timelines.timeline(MachineId(site, machine), since, until)
        silent = (silent.since for silent in silent_machines() if silent.machine == timeline.machine.id)
        view = _timeline(timeline, catalogue.entries())
        view.silent_since = next(silent, None)
        return view

    return routes


def _report(
    metrics: AlarmMetrics, query: AlarmMetricsQuery, shifts: list[ShiftView], entries: Entries
) -> AlarmMetricsReport:
    return AlarmMetricsReport(
        since=metrics.since,
        until=metrics.until,
        by=query.by,
        shift=query.shift,
        machines=metrics.machines,
        excluded=metrics.excluded,
        truncated=metrics.truncated,
        limits=BandLimits(acceptable_up_to=ACCEPTABLE_UP_TO, excessive_from=EXCESSIVE_FROM),
        shifts=shifts,
        total=counts_view(metrics.total),
        rows=[row_view(key, counts, entries) for key, counts in metrics.rows[:_MAX_ROWS]],
        top=[top_view(count, entries) for count in metrics.codes[:TOP]],
        floods=[flood_view(flood, entries) for flood in metrics.floods[:_MAX_FINDINGS]],
        chatter=[chatter_view(chatter, entries) for chatter in metrics.chatter[:_MAX_FINDINGS]],
        standing=[standing_view(alarm, entries) for alarm in metrics.standing[:_MAX_FINDINGS]],
        counts=AlarmMetricsCounts(
            rows=len(metrics.rows),
            floods=len(metrics.floods),
            chatter=len(metrics.chatter),
            standing=len(metrics.standing),
        ),
        rate=RateView(
            bucket=metrics.bucket,
            time_zone=metrics.time_zone,
            buckets=[
                BucketView(
                    start=bucket.start,
                    end=bucket.end,
                    alarms=bucket.alarms,
                    alarms_per_day=_rounded(bucket.alarms_per_day, 1),
                )
                for bucket in metrics.rate
            ],
        ),
    )


def counts_view(counts: AlarmCounts) -> AlarmMetricsView:
    """Return counts as REST sends them."""
    return AlarmMetricsView(
        alarms=counts.alarms,
        machines=counts.machines,
        machine_days=round(counts.monitored_us / _DAY_US, 3),
        alarms_per_day=_rounded(counts.alarms_per_day, 1),
        band=counts.band,
        peak_10min=counts.peak,
        floods=counts.floods,
        flood_share=_rounded(counts.flood_share, _DIGITS),
        alarms_in_floods=counts.in_floods,
        chattering=counts.chattering,
        standing=counts.standing,
    )


def row_view(key: GroupKey, counts: AlarmCounts, entries: Entries) -> AlarmMetricsRow:
    """Return a row as REST sends it."""
    entry = None if key.code is None else _entry(key.code, entries)
    return AlarmMetricsRow(
        site=key.site,
        machine=key.machine,
        shift=key.shift,
        code=key.code,
        text=entry.text if entry else None,
        severity=entry.severity if entry else None,
        day=key.day,
        hour=key.hour,
        metrics=counts_view(counts),
    )


def top_view(count: CodeCount, entries: Entries) -> TopCodeView:
    """Return the count of a code as REST sends it."""
    entry = _entry(count.code, entries)
    return TopCodeView(
        code=count.code,
        text=entry.text,
        severity=entry.severity,
        alarms=count.alarms,
        share=round(count.share, _DIGITS),
        machines=count.machines,
    )


def flood_view(finding: MachineFlood, entries: Entries) -> FloodView:
    """Return a flood as REST sends it."""
    flood = finding.flood
    return FloodView(
        site=finding.machine.site,
        machine=finding.machine.machine,
        start=from_us(flood.start_us),
        end=from_us(flood.end_us) if finding.over else None,
        alarms=flood.alarms,
        peak_10min=flood.peak,
        top_code=flood.top_code,
        top_text=_entry(flood.top_code, entries).text,
    )


def standing_view(alarm: MachineStanding, entries: Entries) -> StandingAlarmView:
    """Return a standing alarm as REST sends it."""
    return StandingAlarmView(
        site=alarm.machine.site,
        machine=alarm.machine.machine,
        code=alarm.run.code,
        text=_entry(alarm.run.code, entries).text,
        since=from_us(alarm.run.first_us),
        last_at=from_us(alarm.run.last_us),
        alarms=alarm.run.alarms,
    )


def chatter_view(chatter: MachineChatter, entries: Entries) -> ChatterView:
    """Return a chattering code as REST sends it."""
    return ChatterView(
        site=chatter.machine.site,
        machine=chatter.machine.machine,
        code=chatter.code,
        text=_entry(chatter.code, entries).text,
        bursts=chatter.bursts,
        alarms=chatter.alarms,
        last_at=from_us(chatter.last_us),
    )


def _timeline(timeline: Timeline, entries: Entries) -> TimelineView:
    machine, agent = timeline.machine, timeline.agent
    alarms = []
    for at_us, code in zip(timeline.alarms.times.tolist(), timeline.alarms.codes.tolist(), strict=True):
        entry = _entry(code, entries)
        alarms.append(TimelineAlarm(at=from_us(at_us), code=code, text=entry.text, severity=entry.severity))
    return TimelineView(
        site=machine.id.site,
        machine=machine.id.machine,
        name=machine.name,
        time_zone=machine.time_zone,
        since=timeline.since,
        until=timeline.until,
        count=timeline.count,
        alarms=alarms,
        truncated=timeline.truncated,
        floods=[flood_view(flood, entries) for flood in timeline.floods],
        chatter=[
            BurstView(
                code=burst.code,
                text=_entry(burst.code, entries).text,
                start=from_us(burst.first_us),
                end=from_us(burst.last_us),
                alarms=burst.alarms,
            )
            for burst in timeline.bursts
        ],
        standing=[standing_view(alarm, entries) for alarm in timeline.standing],
        gaps=[gap_view(gap, dropped) for gap, dropped in timeline.gaps],
        last_seen_at=agent.last_seen_at if agent else None,
        online=agent.online if agent else None,
        silent_since=None,
    )


def _entry(code: int, entries: Entries) -> CatalogueEntry:
    return entries.get(code) or unknown_code(code)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
