"""Routes of alarm metrics (ISA-18.2, EEMUA 191) and timelines."""

from collections.abc import Callable, Iterable
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from service.alarm_metrics.activity import seconds
from service.alarm_metrics.models import ACCEPTABLE_UP_TO, EXCESSIVE_FROM, AlarmCounts
from service.alarm_metrics.service import AlarmMetrics, AlarmMetricsQuery, AlarmMetricsService, GroupKey
from service.alarm_metrics.timeline import TimelineService
from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.catalogue import Catalogue
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
    RateView,
    ShiftView,
    TopCodeView,
)
from wire.rest.timelines import TimelineView
from wire.timestamps import UtcDatetime

TOP = 10
_MAX_FINDINGS, _MAX_ROWS = 100, 1000
_DIGITS = 4
_DAY_US = 86_400_000_000

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
    silent_machines: Callable[[], Iterable[SilentMachine]],
) -> APIRouter:
    """Return the routes of alarm metrics and timelines."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/alarm-metrics", tags=["alarm metrics"], responses=responses(404, 422, 503))
    def get_alarm_metrics(query: MetricsQuery) -> AlarmMetricsReport:
        """Return alarm rates in the bands of ISA-18.2, floods, chattering and standing alarms.

        A flood starts when more than 10 alarms of a machine came within ten minutes and ends when fewer than 5
        did; chattering is three or more alarms of one code within a minute. An alarm is active from its raise to
        its clear, and stale after 24 hours. Where a machine does not report clears, *standing* alarms replace
        stale ones: raised for more than 24 hours without a pause of more than an hour. Days, hours and shifts are
        in the time zone of each machine.
        """
        shifts = [ShiftView(shift=name, start=f"{at:%H:%M}") for name, at in metrics.shifts.items()]
        return _report(metrics.compute(query), query, shifts, metrics.catalogue.entries())

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
        identity = MachineId(site, machine)
        timeline = timelines.timeline(identity, since, until)
        silent = (silent.since for silent in silent_machines() if silent.machine == identity)
        return timeline.model_copy(update={"silent_since": next(silent, None)})

    return routes


def _report(
    metrics: AlarmMetrics, query: AlarmMetricsQuery, shifts: list[ShiftView], catalogue: Catalogue
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
        rows=[row_view(key, counts, catalogue) for key, counts in metrics.rows[:_MAX_ROWS]],
        top=metrics.codes[:TOP],
        durations=sorted(filter(_has_duration, metrics.codes), key=_longest_first)[:TOP],
        floods=metrics.floods[:_MAX_FINDINGS],
        chatter=metrics.chatter[:_MAX_FINDINGS],
        standing=metrics.standing[:_MAX_FINDINGS],
        stale=metrics.stale[:_MAX_FINDINGS],
        active=metrics.active[:_MAX_FINDINGS],
        counts=AlarmMetricsCounts(
            rows=len(metrics.rows),
            floods=len(metrics.floods),
            chatter=len(metrics.chatter),
            standing=len(metrics.standing),
            stale=len(metrics.stale),
            active=len(metrics.active),
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


def _has_duration(code: TopCodeView) -> bool:
    return code.active_seconds is not None or code.downtime_seconds is not None


def _longest_first(code: TopCodeView) -> tuple[float, float, int]:
    return (-(code.downtime_seconds or 0), -(code.active_seconds or 0), code.code)


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
        stale=counts.stale,
        active=counts.active,
        downtime_seconds=seconds(counts.downtime_us),
    )


def row_view(key: GroupKey, counts: AlarmCounts, catalogue: Catalogue) -> AlarmMetricsRow:
    """Return a row as REST sends it."""
    entry = None if key.code is None else catalogue[key.code]
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


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
