"""Timelines: one machine's alarms with floods, chatter and gaps marked, as a chart draws them."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from service.alarm_metrics.api import Entries, entry_of, flood_view, standing_view
from service.alarm_metrics.findings import MachineStanding
from service.alarm_metrics.timeline import Timeline
from service.http.problems import responses
from service.http.request import MachineName, Site
from service.machines.api import gap_view
from wire.identity import MachineId
from wire.rest.timelines import BurstView, TimelineAlarm, TimelineView
from wire.timestamps import UtcDatetime, from_us

if TYPE_CHECKING:
    from service.app.api_services import AppServices


def router(parts: "AppServices") -> APIRouter:
    """Return the route of timelines."""
    routes = APIRouter(prefix="/v1/machines", tags=["machines"])

    @routes.get("/{site}/{machine}/timeline", responses=responses(404, 422))
    def get_timeline(
        site: Site,
        machine: MachineName,
        since: Annotated[
            UtcDatetime | None, Query(description="Not before this moment; 28 hours before `until` unless given.")
        ] = None,
        until: Annotated[
            UtcDatetime | None,
            Query(description="Before this moment, 31 days after `since` at most; now unless given."),
        ] = None,
    ) -> TimelineView:
        """What the machine raised, with floods, bursts of chatter, standing alarms and gaps, in time order."""
        found = parts.timelines.timeline(MachineId(site, machine), since, until)
        silent = [one.since for one in parts.silence.current() if one.machine == found.machine.id]
        view = _view(found, parts.catalogue.entries())
        return view.model_copy(update={"silent_since": silent[0]}) if silent else view

    return routes


def _view(found: Timeline, entries: Entries) -> TimelineView:
    machine, agent = found.machine, found.agent
    alarms = zip(found.alarms.times.tolist(), found.alarms.codes.tolist(), strict=True)
    return TimelineView(
        site=machine.id.site,
        machine=machine.id.machine,
        name=machine.name,
        time_zone=machine.time_zone,
        since=found.since,
        until=found.until,
        count=found.count,
        alarms=[_alarm(at_us, code, entries) for at_us, code in alarms],
        truncated=found.truncated,
        floods=[flood_view(one, entries) for one in found.floods],
        chatter=[
            BurstView(
                code=one.code,
                text=entry_of(one.code, entries).text,
                start=from_us(one.first_us),
                end=from_us(one.last_us),
                alarms=one.alarms,
            )
            for one in found.bursts
        ],
        standing=[standing_view(MachineStanding(machine.id, run), entries) for run in found.standing],
        gaps=[gap_view(gap, dropped) for gap, dropped in found.gaps],
        last_seen_at=agent.last_seen_at if agent else None,
        online=agent.online if agent else None,
        silent_since=None,
    )


def _alarm(at_us: int, code: int, entries: Entries) -> TimelineAlarm:
    entry = entry_of(code, entries)
    return TimelineAlarm(at=from_us(at_us), code=code, text=entry.text, severity=entry.severity)
