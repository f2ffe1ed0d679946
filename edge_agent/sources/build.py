"""Build the configured source; the libraries of a protocol are imported only for a source that needs them."""

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

from edge_agent.errors import ConfigRejected
from edge_agent.settings import Settings, SourceKind
from edge_agent.sources import CheckedSource, Context, Source
from edge_agent.sources.codes import CodeBook, read_code_map
from edge_agent.sources.replay import Replay
from edge_agent.sources.tail import Tail
from wire.clock import PlantClock
from wire.log_rows import RowReader

if TYPE_CHECKING:
    from edge_agent.sources.columns import ColumnReader

PROTOCOLS = (
    SourceKind.MODBUS,
    SourceKind.S7,
    SourceKind.OPCUA,
    SourceKind.MQTT,
    SourceKind.HTTP,
    SourceKind.SQL,
    SourceKind.SPARKPLUG,
)


def code_book(settings: Settings) -> CodeBook:
    """Return the numbers of the code map."""
    return CodeBook(read_code_map(settings.source_codes) if settings.source_codes else None)


def build_source(settings: Settings, clock: PlantClock, codes: CodeBook, *, trial: bool = False) -> Source:
    """Return the source, or raise :class:`ConfigRejected`; a ``trial`` acknowledges nothing."""
    if settings.source_kind in PROTOCOLS:
        return build_protocol(settings, clock, codes, trial=trial)
    if settings.source_kind is SourceKind.SIMULATED:
        # Imported late: real machines do not need its tables.
        from edge_agent.simulator import machine_profile  # noqa: PLC0415
        from edge_agent.sources.simulated import Simulated  # noqa: PLC0415

        return Simulated(
            machine_profile(settings.source_seed, settings.source_index),
            clock,
            settings.source_since or clock.now(),
        )
    path = settings.source_path
    if path is None:
        raise ConfigRejected("A file source needs source_path.")
    if path.is_dir():
        raise ConfigRejected(f"{path} is a folder; give a file to --source-path.")
    if settings.source_kind is SourceKind.TAIL and settings.source_options:
        columns = build_columns(settings, clock, codes)
        return Tail(path, rows=columns, encoding=columns.encoding, start_file=columns.start_file)
    rows = RowReader(settings.source_serial, ZoneInfo(settings.source_timezone), settings.source_since)
    if settings.source_kind is SourceKind.TAIL:
        return Tail(path, rows=rows)
    if not path.is_file():
        raise ConfigRejected(f"There is no file {path} to replay; give an existing one to --source-path.")
    return Replay(path, rows=rows, clock=clock, at_once=settings.source_pace == "at_once")


def build_columns(settings: Settings, clock: PlantClock, codes: CodeBook) -> "ColumnReader":
    """Return the reader of the table ``[tail]``."""
    from edge_agent.sources.columns import ColumnReader, parse_columns  # noqa: PLC0415 - few need it

    return ColumnReader(
        parse_columns(settings.source_options), _context(settings, clock, codes), settings.source_serial
    )


def build_protocol(
    settings: Settings, clock: PlantClock, codes: CodeBook, *, trial: bool = False
) -> CheckedSource:
    """Return the source of a protocol; its module has the name of the kind, and so has its extra."""
    kind = settings.source_kind.value
    try:
        module = import_module(f"edge_agent.sources.{kind}")
    except ModuleNotFoundError as error:
        raise ConfigRejected(
            f"A source of kind {kind} needs the library {error.name}, which is not installed. "
            f"Install it with: pip install 'alarmcast[{kind}]'."
        ) from None
    context = replace(_context(settings, clock, codes), trial=trial)
    return cast("CheckedSource", module.build(settings.source_options, context))


def _context(settings: Settings, clock: PlantClock, codes: CodeBook) -> Context:
    zone = ZoneInfo(settings.source_timezone)
    return Context(clock, codes, zone, settings.source_since, settings.source_password)
