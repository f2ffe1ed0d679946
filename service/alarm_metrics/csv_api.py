"""Routes of CSV exports: stored alarms and the tables of alarm metrics."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from service.alarm_metrics.api import (
    MachineFilter,
    MetricsQuery,
    SiteFilter,
    row_view,
)
from service.alarm_metrics.csv_export import ALARM_COLUMNS, AlarmExport, ExportQuery
from service.alarm_metrics.service import AlarmMetrics, AlarmMetricsQuery, AlarmMetricsService
from service.http.csv_download import CsvResponse, csv_response, documented
from wire.rest.alarm_metrics import (
    ActiveAlarmView,
    AlarmMetricsRow,
    AlarmMetricsView,
    ChatterView,
    FloodView,
    StandingAlarmView,
    TopCodeView,
)
from wire.timestamps import UtcDatetime

_ROW = (*(name for name in AlarmMetricsRow.model_fields if name != "metrics"), *AlarmMetricsView.model_fields)
_TOP = tuple(TopCodeView.model_fields)
_FLOODS = tuple(FloodView.model_fields)
_CHATTER = tuple(ChatterView.model_fields)
_ACTIVE = tuple(ActiveAlarmView.model_fields)
_STANDING = tuple(StandingAlarmView.model_fields)


def router(metrics: AlarmMetricsService, export: AlarmExport) -> APIRouter:
    """Return the routes of exports."""
    routes = APIRouter(prefix="/v1", tags=["exports"], default_response_class=CsvResponse)

    @routes.get("/alarms.csv", responses=documented(ALARM_COLUMNS))
    def export_alarms(
        site: SiteFilter = None,
        machine: MachineFilter = None,
        since: Annotated[UtcDatetime | None, Query(description="Start (inclusive).")] = None,
        until: Annotated[UtcDatetime | None, Query(description="End (exclusive).")] = None,
        code: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only of this code.")] = None,
    ) -> CsvResponse:
        """Export every stored alarm by machine and time, including flagged ones.

        `at` is UTC, `plant_time` the same moment in plant time, `cleared_at` is empty if it is
        not known. An apostrophe is put before a text that a
        spreadsheet would read as a formula.
        """
        rows = export.rows(ExportQuery(site, machine, since, until, code))
        return csv_response(ALARM_COLUMNS, rows, "alarms", site, machine, _minute(since), _minute(until))

    @routes.get("/alarm-metrics/top.csv", responses=documented(_TOP))
    def export_top_alarms(query: MetricsQuery) -> CsvResponse:
        """Export every code with its share, most frequent first; `by` is ignored."""
        result = metrics.compute(query)
        return _metrics_csv(_TOP, _values(result.codes), "top-alarms", query, result)

    @routes.get("/alarm-metrics/rows.csv", responses=documented(_ROW))
    def export_alarm_metrics(query: MetricsQuery) -> CsvResponse:
        """Export all rows of the alarm metrics."""
        result, catalogue = metrics.compute(query), metrics.catalogue.entries()
        rows = (_flat(row_view(key, counts, catalogue)) for key, counts in result.rows)
        return _metrics_csv(_ROW, rows, f"alarm-metrics-by-{query.by.value}", query, result)

    @routes.get("/alarm-metrics/floods.csv", responses=documented(_FLOODS))
    def export_floods(query: MetricsQuery) -> CsvResponse:
        """Export every flood, newest first; `by` is ignored."""
        result = metrics.compute(query)
        return _metrics_csv(_FLOODS, _values(result.floods), "floods", query, result)

    @routes.get("/alarm-metrics/chatter.csv", responses=documented(_CHATTER))
    def export_chatter(query: MetricsQuery) -> CsvResponse:
        """Export every chattering code, most alarms first; `by` is ignored."""
        result = metrics.compute(query)
        return _metrics_csv(_CHATTER, _values(result.chatter), "chatter", query, result)

    @routes.get("/alarm-metrics/stale.csv", responses=documented(_ACTIVE))
    def export_stale(query: MetricsQuery) -> CsvResponse:
        """Export every alarm that was active for more than 24 hours, longest first; `by` is ignored."""
        result = metrics.compute(query)
        return _metrics_csv(_ACTIVE, _values(result.stale), "stale", query, result)

    @routes.get("/alarm-metrics/active.csv", responses=documented(_ACTIVE))
    def export_active(query: MetricsQuery) -> CsvResponse:
        """Export every alarm that is active at the end of the span, longest first; `by` is ignored."""
        result = metrics.compute(query)
        return _metrics_csv(_ACTIVE, _values(result.active), "active", query, result)

    @routes.get("/alarm-metrics/standing.csv", responses=documented(_STANDING))
    def export_standing(query: MetricsQuery) -> CsvResponse:
        """Export every standing alarm, longest first; `by` is ignored."""
        result = metrics.compute(query)
        return _metrics_csv(_STANDING, _values(result.standing), "standing", query, result)

    return routes


def _values(views: Iterable[BaseModel]) -> Iterator[Iterable[object]]:
    return (view.model_dump(mode="json").values() for view in views)


def _metrics_csv(
    columns: tuple[str, ...],
    rows: Iterable[Iterable[object]],
    name: str,
    query: AlarmMetricsQuery,
    result: AlarmMetrics,
) -> CsvResponse:
    span = (_minute(result.since), _minute(result.until))
    return csv_response(columns, rows, name, query.site, query.machine, query.shift, *span)


def _flat(row: AlarmMetricsRow) -> list[object]:
    fields = row.model_dump(mode="json")
    counts = fields.pop("metrics")
    return [*fields.values(), *counts.values()]


def _minute(at: datetime | None) -> str | None:
    return None if at is None else f"{at.astimezone(UTC):%Y%m%dT%H%MZ}"
