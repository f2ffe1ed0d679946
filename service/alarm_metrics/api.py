"""Alarm figures after ISA-18.2 and EEMUA 191: how many, how dense, which, and what stands out."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query

from service.alarm_metrics.findings import CodeCount, MachineChatter, MachineFlood, MachineStanding
from service.alarm_metrics.models import ACCEPTABLE_UP_TO, EXCESSIVE_FROM, AlarmCounts
from service.alarm_metrics.service import AlarmMetrics, AlarmMetricsQuery, GroupKey
from service.http.problems import responses
from service.machines.catalogue import CatalogueEntry, unknown_code
from wire.enums import AlarmMetricsGrouping
from wire.identity import ID_PATTERN
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
from wire.timestamps import UtcDatetime, from_us

if TYPE_CHECKING:
    from service.app.api_services import AppServices

TOP = 10
_MOST, _MOST_LINES = 100, 1000
_DIGITS = 4
_DAY_US = 86_400_000_000

Entries = dict[int, CatalogueEntry]
OfSite = Annotated[str | None, Query(pattern=ID_PATTERN, description="Of this plant only.")]
OfMachine = Annotated[str | None, Query(pattern=ID_PATTERN, description="Of this machine only; needs `site`.")]


def parse_query(
    site: OfSite = None,
    machine: OfMachine = None,
    since: Annotated[
        UtcDatetime | None, Query(description="Not before this moment; 7 days before `until` unless given.")
    ] = None,
    until: Annotated[
        UtcDatetime | None,
        Query(description="Before this moment, at most 92 days after `since`; now unless given."),
    ] = None,
    shift: Annotated[
        str | None,
        Query(max_length=32, description="Within this shift only, by each plant's own clock.", examples=["early"]),
    ] = None,
    by: Annotated[
        AlarmMetricsGrouping, Query(description="What there is a line for.")
    ] = AlarmMetricsGrouping.MACHINE,
) -> AlarmMetricsQuery:
    """Return what a request asks for."""
    return AlarmMetricsQuery(by, site, machine, since, until, shift)


Asked = Annotated[AlarmMetricsQuery, Depends(parse_query)]


def router(parts: "AppServices") -> APIRouter:
    """Return the route of figures."""
    routes = APIRouter(prefix="/v1", tags=["figures"])

    @routes.get("/figures", responses=responses(404, 422, 503))
    def get_figures(query: Asked) -> AlarmMetricsReport:
        """How many alarms people get, in the bands of ISA-18.2, and what stands out.

        A flood is on once more than 10 alarms of a machine came within ten minutes and over once fewer than 5
        did; chatter is three or more of one code within a minute. Machines do not tell when an alarm clears, so
        instead of stale alarms there are *standing* ones: raised for more than 24 hours without a pause of more
        than an hour. Days, hours and shifts are those of each machine's own time zone.
        """
        found = parts.figures.compute(query)
        shifts = [ShiftView(shift=name, start=f"{at:%H:%M}") for name, at in parts.figures.shifts.items()]
        return _view(found, query, shifts, parts.catalogue.entries())

    return routes


def _view(
    found: AlarmMetrics, query: AlarmMetricsQuery, shifts: list[ShiftView], entries: Entries
) -> AlarmMetricsReport:
    return AlarmMetricsReport(
        since=found.since,
        until=found.until,
        by=query.by,
        shift=query.shift,
        machines=found.machines,
        excluded=found.left_out,
        truncated=found.truncated,
        limits=BandLimits(acceptable_up_to=ACCEPTABLE_UP_TO, excessive_from=EXCESSIVE_FROM),
        shifts=shifts,
        total=figures_of(found.total),
        rows=[line_view(key, tally, entries) for key, tally in found.lines[:_MOST_LINES]],
        top=[top_view(one, entries) for one in found.codes[:TOP]],
        floods=[flood_view(one, entries) for one in found.floods[:_MOST]],
        chatter=[chatter_view(one, entries) for one in found.chatter[:_MOST]],
        standing=[standing_view(one, entries) for one in found.standing[:_MOST]],
        counts=AlarmMetricsCounts(
            rows=len(found.lines),
            floods=len(found.floods),
            chatter=len(found.chatter),
            standing=len(found.standing),
        ),
        rate=RateView(
            bucket=found.bucket,
            time_zone=found.time_zone,
            buckets=[
                BucketView(
                    start=one.start, end=one.end, alarms=one.alarms, alarms_per_day=_rounded(one.alarms_a_day, 1)
                )
                for one in found.rate
            ],
        ),
    )


def figures_of(tally: AlarmCounts) -> AlarmMetricsView:
    """Return a tally as the API shows it."""
    return AlarmMetricsView(
        alarms=tally.alarms,
        machines=tally.machines,
        machine_days=round(tally.monitored_us / _DAY_US, 3),
        alarms_per_day=_rounded(tally.alarms_per_day, 1),
        band=tally.band,
        peak_10min=tally.peak,
        floods=tally.floods,
        flood_share=_rounded(tally.flood_share, _DIGITS),
        alarms_in_floods=tally.in_floods,
        chattering=tally.chattering,
        standing=tally.standing,
    )


def line_view(key: GroupKey, tally: AlarmCounts, entries: Entries) -> AlarmMetricsRow:
    """Return a line as the API shows it."""
    entry = None if key.code is None else entry_of(key.code, entries)
    return AlarmMetricsRow(
        site=key.site,
        machine=key.machine,
        shift=key.shift,
        code=key.code,
        text=entry.text if entry else None,
        severity=entry.severity if entry else None,
        day=key.day,
        hour=key.hour,
        metrics=figures_of(tally),
    )


def top_view(one: CodeCount, entries: Entries) -> TopCodeView:
    """Return one of the commonest codes as the API shows it."""
    entry = entry_of(one.code, entries)
    return TopCodeView(
        code=one.code,
        text=entry.text,
        severity=entry.severity,
        alarms=one.alarms,
        share=round(one.share, _DIGITS),
        machines=one.machines,
    )


def flood_view(one: MachineFlood, entries: Entries) -> FloodView:
    """Return a flood as the API shows it."""
    flood = one.flood
    return FloodView(
        site=one.machine.site,
        machine=one.machine.machine,
        start=from_us(flood.start_us),
        end=from_us(flood.end_us) if one.over else None,
        alarms=flood.alarms,
        peak_10min=flood.peak,
        top_code=flood.top_code,
        top_text=entry_of(flood.top_code, entries).text,
    )


def standing_view(one: MachineStanding, entries: Entries) -> StandingAlarmView:
    """Return a standing alarm as the API shows it."""
    return StandingAlarmView(
        site=one.machine.site,
        machine=one.machine.machine,
        code=one.run.code,
        text=entry_of(one.run.code, entries).text,
        since=from_us(one.run.first_us),
        last_at=from_us(one.run.last_us),
        alarms=one.run.alarms,
    )


def entry_of(code: int, entries: Entries) -> CatalogueEntry:
    """Return what a code means, known or not."""
    return entries.get(code) or unknown_code(code)


def chatter_view(one: MachineChatter, entries: Entries) -> ChatterView:
    """Return a chattering code as the API shows it."""
    return ChatterView(
        site=one.machine.site,
        machine=one.machine.machine,
        code=one.code,
        text=entry_of(one.code, entries).text,
        bursts=one.bursts,
        alarms=one.alarms,
        last_at=from_us(one.last_us),
    )


def _rounded(figure: float | None, digits: int) -> float | None:
    return None if figure is None else round(figure, digits)
