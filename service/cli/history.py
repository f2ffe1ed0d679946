"""A history file on the command line: its columns, a preview, a question, and the import."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar
from zoneinfo import ZoneInfo

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import DownloadColumn, Progress

from service.cli.arguments import opened, read
from service.cli.client import api
from service.errors import InputRejected
from wire.identity import MachineId
from wire.rest.enrolment import HistoryLoaded
from wire.rest.histories import HistoryColumns, HistoryPreview, HistoryRowView

T = TypeVar("T")
_SHOWN_CODES, _SHOWN_ROWS, _SHOWN_SERIALS = 10, 5, 10

PresetOption = Annotated[
    str | None, typer.Option(help="The history is an export of: wincc or ignition.", metavar="PRESET")
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="How the history is written, as in [tail] of edge.toml: time=Zeit, code=Nr, delimiter=;. Repeatable.",
    ),
]
CodeMap = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="CSV with name and code: numbers of named alarms."),
]
PreviewOnly = Annotated[bool, typer.Option("--preview", help="Show what the history holds, and store nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Load the history without a preview and without a question.")]


@dataclass(frozen=True)
class HistoryFile:
    """A file and how to read it."""

    machine: MachineId
    path: Path
    serial: str | None
    time_zone: str | None
    columns: HistoryColumns
    code_map: bytes | None


def columns_of(preset: str | None, given: list[str] | None) -> HistoryColumns:
    """Read the options that say how a file is written."""
    values: dict[str, str] = {} if preset is None else {"preset": preset}
    for one in given or []:
        key, equals, value = one.partition("=")
        if not equals:
            raise InputRejected(f"--column {one} needs a key and a value, such as time=Zeit.")
        values["serial_column" if key.strip() == "serial" else key.strip()] = value
    try:
        return HistoryColumns.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            known = ", ".join(name.removesuffix("_column") for name in HistoryColumns.model_fields)
            raise InputRejected(f"There is no --column {key}; give one of {known}.") from None
        raise InputRejected(f"{values[key]!r} cannot be the {key} of a history: {first['msg']}.") from None


def code_map_of(file: Path | None) -> bytes | None:
    """Read a code map, if there is one."""
    return None if file is None else read(file)


def confirmed(data_dir: Path | None, past: HistoryFile, *, preview_only: bool, yes: bool) -> HistoryFile | None:
    """Show what a file holds; return it if it is to be loaded, or raise :class:`InputRejected` if it cannot be.

    On a terminal a person chooses the serial if there are several, and is asked before anything is stored.
    """
    if not past.path.is_file():
        raise InputRejected(f"There is no file {past.path}.")
    if yes and not preview_only:
        return past
    with api(data_dir) as client:
        preview = _send(client.enrolment.preview_history, past, "Reading")
        if preview.field == "serial" and len(preview.serials) > 1 and _is_terminal():
            past = replace(past, serial=_chosen_serial(preview))
            preview = _send(client.enrolment.preview_history, past, "Reading")
    _show(preview, past.path.name)
    if preview.problem is not None:
        raise InputRejected(preview.problem)
    if preview_only:
        typer.echo("This was a preview: nothing was stored.")
        return None
    if _is_terminal() and not typer.confirm(f"Import {preview.rows:,} alarms for {past.machine}?"):
        typer.echo("Nothing was stored.")
        return None
    return past


def load(data_dir: Path | None, past: HistoryFile) -> HistoryLoaded:
    """Import a file and say what became of its rows."""
    with api(data_dir) as client:
        loaded = _send(client.enrolment.load_history, past, "Storing")
    typer.echo(
        f"{loaded.stored:,} events stored, {loaded.duplicates:,} known already, "
        f"{loaded.quarantined:,} rows quarantined. "
        f"Timestamps that name no zone were read in {loaded.time_zone}."
    )
    for note in loaded.notes:
        typer.echo(note)
    if loaded.examples:
        typer.echo("The first rows that are no alarms:")
    for example in loaded.examples:
        typer.echo(f"  {example}")
    return loaded


def _send(call: Callable[..., T], past: HistoryFile, stage: str) -> T:
    """Send a file with a progress bar and return the answer."""
    bars = (*Progress.get_default_columns(), DownloadColumn())
    bar = Progress(*bars, transient=True, disable=not Console().is_terminal)  # or it leaves an empty line
    with opened(past.path) as file, bar as progress:
        size, name = past.path.stat().st_size, past.path.name
        task = progress.add_task(f"Sending {name}", total=size)

        def on_progress(sent: int) -> None:
            now = stage if sent >= size else "Sending"
            progress.update(task, completed=sent, description=f"{now} {name}")

        return call(
            past.machine,
            file,
            name=name,
            serial=past.serial or None,
            time_zone=past.time_zone or None,
            columns=past.columns,
            code_map=past.code_map,
            on_progress=on_progress,
        )


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _chosen_serial(preview: HistoryPreview) -> str:
    typer.echo(f"The file has rows of several machines: {_serials(preview)}.")
    known = [one.serial for one in preview.serials]
    while (serial := str(typer.prompt("Serial of this machine")).strip()) not in known:
        typer.echo(f"There is no row of serial {serial}.")
    return serial


def _show(preview: HistoryPreview, name: str) -> None:
    """Print what a file holds."""
    zone = ZoneInfo(preview.time_zone)
    period = ""
    if preview.first_at is not None and preview.last_at is not None:
        first, last = preview.first_at.astimezone(zone), preview.last_at.astimezone(zone)
        period = f", from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} ({preview.time_zone})"
    typer.echo(f"{name}: {preview.lines:,} lines, {preview.rows:,} alarms{period}.")
    if preview.first_rows:
        typer.echo("The first rows as they are read:")
    for row in preview.first_rows[:_SHOWN_ROWS]:
        typer.echo(f"  line {row.line}: {_row(row, zone)}   <- {row.text}")
    if preview.codes:
        typer.echo(f"{preview.code_count:,} alarm codes; the most frequent:")
    for code in preview.codes[:_SHOWN_CODES]:
        typer.echo(f"  {code.code} {code.name or code.text or ''}".rstrip() + f": {code.rows:,} rows")
    if preview.serials:
        typer.echo(f"Serials: {_serials(preview)}.")
    if preview.rejected:
        typer.echo(f"{preview.rejected:,} rows cannot be read and would be quarantined. The first:")
    for bad in preview.rejected_rows[:_SHOWN_ROWS]:
        typer.echo(f"  line {bad.line}: {bad.reason}   <- {bad.text}")
    for note in preview.notes:
        typer.echo(note)


def _row(row: HistoryRowView, zone: ZoneInfo) -> str:
    if row.at is None:
        return "clears an alarm, ignored" if row.meaning == "cleared" else "another state, ignored"
    name = f" ({row.name})" if row.name else ""
    return f"{row.at.astimezone(zone):%Y-%m-%d %H:%M:%S} alarm {row.code}{name}"


def _serials(preview: HistoryPreview) -> str:
    words = [f"{one.serial} ({one.rows:,} {'row' if one.rows == 1 else 'rows'})" for one in preview.serials]
    more = f" and {len(words) - _SHOWN_SERIALS} more" if len(words) > _SHOWN_SERIALS else ""
    return ", ".join(words[:_SHOWN_SERIALS]) + more
