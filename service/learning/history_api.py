"""Routes of histories: preview a file, load it, and how far that is."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from service.auth.audit_store import AuditStore
from service.broker_access.edge_toml import source_lines
from service.errors import InputRejected
from service.http.problems import responses
from service.http.request import MachineName, Site, actor, principal
from service.learning.history_file import ImportFile
from service.learning.history_import import ImportResult
from service.learning.history_rows import with_serial_column
from service.learning.history_uploads import HistoryImporter, Upload
from service.machines.models import Machine, MachineReader, zone_named
from wire.alarm_codes import parse_code_map
from wire.columns import PRESETS, ColumnOptions, with_preset
from wire.enums import HistoryState
from wire.identity import MachineId
from wire.log_rows import RowRejected
from wire.rest.enrolment import HistoryLoaded, HistoryUnderWay
from wire.rest.histories import HistoryColumns, HistoryPreview
from wire.rest.texts import PRINTABLE
from wire.timestamps import from_us

_CSV = {
    "text/csv": {
        "schema": {"type": "string"},
        "example": "timestamp,alarm,serial\n2026-11-10 08:00:00,139,1\n2026-11-10 08:04:30,26,1\n",
    },
    "application/gzip": {"schema": {"type": "string", "format": "binary"}, "example": "(the same, gzipped)"},
}
_BODY = {"requestBody": {"required": True, "content": _CSV}}
_USUAL = {"time": "timestamp", "code": "alarm"}
_MAX_CODE_MAP = 2_000_000


def _read_columns(**given: Any) -> HistoryColumns:
    return HistoryColumns(**given)


_read_columns.__signature__ = Signature(  # type: ignore[attr-defined]
    [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[field.annotation, *field.metadata, Query(description=field.description)],
        )
        for name, field in HistoryColumns.model_fields.items()
    ]
)


@dataclass(frozen=True)
class HistoryQuery:
    """What a request says about the file in its body."""

    columns: Annotated[HistoryColumns, Depends(_read_columns)]
    name: Annotated[
        str,
        Query(max_length=200, pattern=PRINTABLE, description="The file's name, for rows that are refused."),
    ] = "upload"
    serial: Annotated[
        str | None, Query(max_length=100, pattern=PRINTABLE, description="Take only rows of this serial.")
    ] = None
    time_zone: Annotated[
        str | None,
        Query(max_length=64, description="Zone of timestamps that name none; the machine's unless given."),
    ] = None
    code_map_bytes: Annotated[
        int,
        Query(
            ge=0,
            le=_MAX_CODE_MAP,
            description="So many bytes at the beginning of the body are a code map: CSV with name and code.",
        ),
    ] = 0

    async def receive(self, request: Request, upload: Upload, machine: Machine | None) -> ImportFile:
        """Write the body to ``upload``; return how it is to be read, or raise :class:`InputRejected`."""
        zone = zone_named(
            self.time_zone or ("UTC" if machine is None else machine.time_zone), pointer="query/time_zone"
        )
        columns = _column_options(self.columns, has_code_map=self.code_map_bytes > 0)
        code_map = b""
        async for received in request.stream():
            missing = self.code_map_bytes - len(code_map)
            code_map += received[:missing] if missing else b""
            upload.write(received[missing:])
        log = ImportFile(upload.path, self.serial or None, zone, self.name, columns, _code_map(code_map))
        return with_serial_column(log)


Described = Annotated[HistoryQuery, Depends()]


@dataclass(frozen=True)
class HistoryServices:
    """What the routes of histories use."""

    machines: MachineReader
    history: HistoryImporter
    audit: AuditStore
    on_history_loaded: Callable[[MachineId], None]


def router(services: HistoryServices) -> APIRouter:
    """Return the routes of histories."""
    history = services.history
    routes = APIRouter(prefix="/v1/machines/{site}/{machine}/history", tags=["enrolment"])

    @routes.post("/preview", responses=responses(404, 413, 422, 429, 503), openapi_extra=_BODY)
    async def preview_history(
        site: Site, machine: MachineName, request: Request, query: Described
    ) -> HistoryPreview:
        """What a file of a machine's past holds; nothing is stored. The machine need not be enrolled yet."""
        identity = MachineId(site, machine)
        known = await run_in_threadpool(services.machines.find, identity)
        with history.receive(identity.site, actor(request)) as upload:
            log = await query.receive(request, upload, known)
            return await run_in_threadpool(history.preview, log)

    @routes.post("", responses=responses(404, 409, 410, 413, 422, 429, 503), openapi_extra=_BODY)
    async def load_history(site: Site, machine: MachineName, request: Request, query: Described) -> HistoryLoaded:
        """Load a machine's past, gzipped or not: timestamp,alarm,serial or any columns; twice changes nothing.

        The file must be of one machine: if it has rows of several serials, name the one to take.
        """
        known = await run_in_threadpool(services.machines.get, MachineId(site, machine))
        known.require_active()
        with history.upload(known, actor(request)) as upload:
            log = await query.receive(request, upload, known)
            await run_in_threadpool(
                services.audit.write,
                at=history.clock.now(),
                who=principal().name,
                action="load history",
                subject=str(known.id),
                reason=f"{query.name}, {upload.size:,} bytes",
            )
            result = await run_in_threadpool(history.load, known, log, upload)
        services.on_history_loaded(known.id)
        return _history_loaded(result, log)

    @routes.get("", responses=responses(404, 422))
    def history_under_way(site: Site, machine: MachineName) -> HistoryUnderWay:
        """How far the file is that is being loaded right now; what came of it is the answer to its own request."""
        upload = history.underway(services.machines.get(MachineId(site, machine)))
        if upload is None:
            return HistoryUnderWay(state=HistoryState.IDLE, bytes=0, lines_done=0, lines=None)
        return HistoryUnderWay(
            state=HistoryState.RECEIVING if upload.lines is None else HistoryState.STORING,
            bytes=upload.size,
            lines_done=upload.lines_done,
            lines=upload.lines,
        )

    return routes


def _column_options(columns: HistoryColumns, *, has_code_map: bool) -> ColumnOptions | None:
    given = columns.tail()
    if not given and not has_code_map:
        return None
    try:
        return ColumnOptions.model_validate(_USUAL | with_preset(given))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]) if first["loc"] else "code"
        raise InputRejected(
            f"The {field} of the file is wrong: {first['msg'].removeprefix('Value error, ')}.",
            pointer=f"query/{'serial_column' if field == 'serial' else field}",
        ) from None


def _code_map(text: bytes) -> dict[str, int]:
    try:
        return parse_code_map(text.decode()) if text else {}
    except UnicodeDecodeError:
        message = "The code map is not text in UTF-8; save it as CSV in UTF-8."
    except RowRejected as error:
        message = f"The code map is wrong: {error}."
    raise InputRejected(message, pointer="query/code_map_bytes")


def _history_loaded(result: ImportResult, log: ImportFile) -> HistoryLoaded:
    last_at = from_us(result.last_us) if result.last_us is not None else None
    zone = str(log.zone)
    return HistoryLoaded(
        stored=result.stored,
        duplicates=result.duplicates,
        flagged=result.too_old + result.from_the_future,
        too_old=result.too_old,
        from_the_future=result.from_the_future,
        quarantined=result.rejected,
        examples=result.examples,
        notes=result.notes,
        rows=result.rows,
        time_zone=zone,
        last_at=last_at,
        edge_toml_source=None
        if last_at is None
        else source_lines(
            time_zone=zone,
            serial=log.serial,
            last_at=last_at,
            tail=_tail(log.columns),
            has_code_map=bool(log.code_map),
        ),
    )


def _tail(columns: ColumnOptions | None) -> dict[str, str | bool | tuple[str, ...]]:
    """Return the table ``[tail]`` of an agent that follows the same file."""
    if columns is None:
        return {}
    preset = {} if columns.preset is None else PRESETS[columns.preset]
    chosen = columns.model_dump(exclude_unset=True)
    return {name: value for name, value in chosen.items() if value is not None and preset.get(name) != value}
