"""Build the routes of alarm metrics."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from service.alarm_metrics import api, csv_api
from service.alarm_metrics.csv_export import AlarmExport
from service.alarm_metrics.export_store import AlarmExports
from service.alarm_metrics.models import ExcludedSpan
from service.alarm_metrics.service import AlarmMetricsService
from service.alarm_metrics.timeline import TimelineService
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.models import MachineReader
from service.machines.silence import SilentMachine
from service.settings import Settings
from wire.clock import PlantClock

if TYPE_CHECKING:
    from fastapi import APIRouter


def build_routers(
    settings: Settings,
    *,
    machines: MachineReader,
    events: EventStore,
    catalogue: CatalogueStore,
    clock: PlantClock,
    excluded_spans: Callable[[datetime, datetime], Collection[ExcludedSpan]],
    silent_machines: Callable[[], Iterable[SilentMachine]],
) -> "tuple[APIRouter, APIRouter]":
    """Return the routes; ``machines`` and ``silent_machines`` must be limited to the caller's sites."""
    metrics = AlarmMetricsService(machines, events, catalogue, clock, settings.shift_starts, excluded_spans)
    return (
        api.router(
            metrics=metrics,
            timelines=TimelineService(machines, events, catalogue, clock),
            silent_machines=silent_machines,
        ),
        csv_api.router(metrics, AlarmExport(machines, AlarmExports(events.database), catalogue, events)),
    )
