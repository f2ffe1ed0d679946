"""CSV for spreadsheets and reports: every alarm as a stream, and the tables of figures."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from service.alarm_metrics.api import (
    Asked,
    OfMachine,
    OfSite,
    chatter_view,
    flood_view,
    line_view,
    standing_view,
    top_view,
)
from service.alarm_metrics.csv_export import ALARM_COLUMNS, ExportQuery, csv_chunks
from service.alarm_metrics.service import AlarmMetrics, AlarmMetricsQuery
from service.http.problems import responses
from wire.rest.alarm_metrics import (
    AlarmMetricsRow,
    AlarmMetricsView,
    ChatterView,
    FloodView,
    StandingAlarmView,
    TopCodeView,
)
from wire.timestamps import UtcDatetime

if TYPE_CHECKING:
    from service.app.api_services import AppServices

_FIGURES = tuple(AlarmMetricsView.model_fields)
_KEYS = tuple(name for name in AlarmMetricsRow.model_fields if name != "metrics")
_TOP = tuple(TopCodeView.model_fields)
_FLOODS = tuple(FloodView.model_fields)
_CHATTER = tuple(ChatterView.model_fields)
_STANDING = tuple(StandingAlarmView.model_fields)


class CsvResponse(StreamingResponse):
    """CSV after RFC 4180, in UTF-8, sent as it is made."""

    media_type = "text/csv"


def router(parts: "AppServices") -> APIRouter:
    """Return the routes of exports."""
    routes = APIRouter(prefix="/v1", tags=["exports"], default_response_class=CsvResponse)

    @routes.get("/alarms.csv", responses=_documented(ALARM_COLUMNS))
    def export_alarms(
        site: OfSite = None,
        machine: OfMachine = None,
        since: Annotated[UtcDatetime | None, Query(description="Not before this moment.")] = None,
        until: Annotated[UtcDatetime | None, Query(description="Before this moment.")] = None,
        code: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Of this code only.")] = None,
    ) -> CsvResponse:
        """Every stored alarm, machine by machine and in time order, flagged ones too.

        `at` is UTC, `plant_time` the same moment by the plant's clock. A text that a spreadsheet would take for
        a formula has an apostrophe before it.
        """
        rows = parts.export.rows(ExportQuery(site, machine, since, until, code))
        return _csv(ALARM_COLUMNS, rows, "alarms", site, machine, _day(since), _day(until))

    @routes.get("/figures/top.csv", responses=_documented(_TOP))
    def export_top_alarms(query: Asked) -> CsvResponse:
        """Every code of the span with its share, the commonest first; `by` changes nothing."""
        found, entries = parts.figures.compute(query), parts.catalogue.entries()
        rows = (top_view(one, entries).model_dump(mode="json").values() for one in found.codes)
        span = (_day(found.since), _day(found.until))
        return _csv(_TOP, rows, "top-alarms", query.site, query.machine, query.shift, *span)

    @routes.get("/figures/lines.csv", responses=_documented((*_KEYS, *_FIGURES)))
    def export_figures(query: Asked) -> CsvResponse:
        """The lines of the figures, all of them."""
        found, entries = parts.figures.compute(query), parts.catalogue.entries()
        rows = (_flat(line_view(key, tally, entries)) for key, tally in found.lines)
        span = (_day(found.since), _day(found.until))
        name = f"figures-by-{query.by.value}"
        return _csv((*_KEYS, *_FIGURES), rows, name, query.site, query.machine, query.shift, *span)

    @routes.get("/figures/floods.csv", responses=_documented(_FLOODS))
    def floods_csv(query: Asked) -> CsvResponse:
        """Every flood of the span, newest first; `by` changes nothing."""
        found, entries = parts.figures.compute(query), parts.catalogue.entries()
        return _findings("floods", (flood_view(one, entries) for one in found.floods), _FLOODS, query, found)

    @routes.get("/figures/chatter.csv", responses=_documented(_CHATTER))
    def chatter_csv(query: Asked) -> CsvResponse:
        """Every chattering code of the span, most alarms first; `by` changes nothing."""
        found, entries = parts.figures.compute(query), parts.catalogue.entries()
        return _findings("chatter", (chatter_view(one, entries) for one in found.chatter), _CHATTER, query, found)

    @routes.get("/figures/standing.csv", responses=_documented(_STANDING))
    def standing_csv(query: Asked) -> CsvResponse:
        """Every standing alarm of the span, the longest first; `by` changes nothing."""
        found, entries = parts.figures.compute(query), parts.catalogue.entries()
        rows = (standing_view(one, entries) for one in found.standing)
        return _findings("standing", rows, _STANDING, query, found)

    return routes


def _findings(
    name: str, views: Iterable[BaseModel], columns: tuple[str, ...], query: AlarmMetricsQuery, found: AlarmMetrics
) -> CsvResponse:
    rows = (view.model_dump(mode="json").values() for view in views)
    return _csv(columns, rows, name, query.site, query.machine, query.shift, _day(found.since), _day(found.until))


def _documented(columns: Iterable[str]) -> dict[int | str, dict[str, Any]]:
    head = ",".join(columns)
    table = {"schema": {"type": "string"}, "example": f"{head}\r\n"}
    return {200: {"description": f"CSV with the columns {head}.", "content": {"text/csv": table}}} | responses(
        404, 422
    )


def _csv(columns: tuple[str, ...], rows: Iterable[Iterable[object]], *name: str | None) -> CsvResponse:
    """Return a download; of its name the parts that are given, all of them letters, digits, '-' and '_'."""
    file = "_".join(part for part in name if part) + ".csv"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return CsvResponse(csv_chunks(columns, rows), headers=headers)


def _flat(line: AlarmMetricsRow) -> list[object]:
    told = line.model_dump(mode="json")
    figures = told.pop("metrics")
    return [*told.values(), *figures.values()]


def _day(at: datetime | None) -> str | None:
    return None if at is None else f"{at.astimezone(UTC):%Y%m%dT%H%MZ}"
