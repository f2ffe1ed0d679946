"""``alarmcast admin enrol``, ``watch`` and ``history load``: a machine in one step, and how far it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from service.broker_access.edge_toml import with_source
from service.cli.arguments import (
    DataDir,
    EdgeToml,
    File,
    MachineArgument,
    Serial,
    machine_id,
    read,
    secret_file,
)
from service.cli.client import api, running_api
from service.cli.history import (
    CodeMap,
    ColumnOption,
    HistoryFile,
    PresetOption,
    PreviewOnly,
    Yes,
    code_map_of,
    columns_of,
    confirmed,
    load,
)
from service.errors import InputRejected
from wire.enums import JobState
from wire.rest.enrolment import HistoryLoaded
from wire.rest.jobs import JobView

_ENDED_WELL = (JobState.PROMOTED, JobState.REJECTED)
_WHY_NONE = "it holds some already, or the broker wants none. To issue new ones: alarmcast admin machine rotate"
_OPEN = (JobState.COLLECTING, JobState.QUEUED, JobState.RUNNING)


def enrol(  # noqa: PLR0913 - a command has as many options as it has
    machine: MachineArgument,
    *,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="The plant's zone, like Europe/Rome; UTC.")] = None,
    catalogue: Annotated[Path | None, typer.Option(help="CSV of the alarm codes the machine brings.")] = None,
    history: Annotated[
        Path | None, typer.Option(help="Its past: timestamp,alarm,serial or any CSV, gzipped or not.")
    ] = None,
    serial: Serial = None,
    preset: PresetOption = None,
    column: ColumnOption = None,
    code_map: CodeMap = None,
    history_zone: Annotated[
        str | None,
        typer.Option(help="Zone of timestamps in the past that name none; the machine's time zone unless given."),
    ] = None,
    preview: PreviewOnly = False,
    yes: Yes = False,
    edge_toml: EdgeToml = None,
    wait: Annotated[bool, typer.Option("--watch", help="Stay and show how it is learned.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Enrol a machine: its alarms are taken, its past is loaded, and it is learned as soon as there is enough."""
    identity = machine_id(machine)
    past = None
    if history is not None:
        zone, columns = history_zone or time_zone, columns_of(preset, column)
        file = HistoryFile(identity, history, serial, zone, columns, code_map_of(code_map))
        past = confirmed(data_dir, file, preview_only=preview, yes=yes)
        if past is None:
            return
    codes = None if catalogue is None else read(catalogue).decode("utf-8", errors="replace")
    with secret_file(edge_toml) as keep:
        with api(data_dir) as client:
            enrolled = client.enrolment.enrol(identity, name=name, time_zone=time_zone, catalogue=codes)
        job, issued = enrolled.job, enrolled.credentials
        typer.echo(f"{identity} is enrolled; job {job.id} is {job.state}.")
        if issued is not None:
            keep(issued.edge_toml)
        elif edge_toml is not None and not enrolled.credentials_note:
            typer.echo(f"No credentials were issued now, so {edge_toml} was not written: {_WHY_NONE} {identity}")
        if enrolled.credentials_note:
            typer.echo(enrolled.credentials_note)
        if past is not None:
            try:
                loaded = load(data_dir, past)
            except InputRejected as error:
                later = f"to load it later: alarmcast admin history load {identity} FILE"
                raise InputRejected(f"{error} The machine is enrolled without its past; {later}") from None
            _prepare_agent(loaded, None if issued is None else issued.edge_toml, keep)
    if wait:
        _watch(data_dir, job.id)
    elif job.state in _OPEN:
        typer.echo(f"See how it is learned: alarmcast admin watch {job.id}")


def history_load(  # noqa: PLR0913 - a command has as many options as it has
    machine: MachineArgument,
    file: File,
    *,
    serial: Serial = None,
    preset: PresetOption = None,
    column: ColumnOption = None,
    code_map: CodeMap = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Zone of timestamps that name none; the machine's unless given.")
    ] = None,
    preview: PreviewOnly = False,
    yes: Yes = False,
    data_dir: DataDir = None,
) -> None:
    """Load a log (timestamp,alarm,serial or any CSV; gzipped or not); loading it twice changes nothing."""
    identity = machine_id(machine)
    with api(data_dir) as client:
        client.machines.get(identity)
    given = HistoryFile(identity, file, serial, time_zone, columns_of(preset, column), code_map_of(code_map))
    past = confirmed(data_dir, given, preview_only=preview, yes=yes)
    if past is not None:
        _prepare_agent(load(data_dir, past))


def watch(
    job: Annotated[int, typer.Argument(metavar="JOB", help="Number of the job.")], data_dir: DataDir = None
) -> None:
    """Show a job's progress until it has ended."""
    _watch(data_dir, job)


def _prepare_agent(
    loaded: HistoryLoaded, edge_toml: str | None = None, keep: Callable[[str], None] = lambda _text: None
) -> None:
    """Let the agent's configuration go on after the loaded history, or say what must stand in it."""
    if loaded.edge_toml_source is None:
        return
    if edge_toml is not None:
        keep(with_source(edge_toml, loaded.edge_toml_source))
        return
    typer.echo("If the machine's agent follows the same log, its edge.toml needs in [source]:")
    typer.echo("".join(f"  {line}\n" for line in loaded.edge_toml_source.splitlines()), nl=False)


def _watch(data_dir: Path | None, number: int) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    said = ""
    with running_api(data_dir) as client, Progress(*columns, transient=True) as progress:
        bar = progress.add_task(f"Job {number}", total=None)
        for job in client.jobs.stream(number):
            _show(progress, bar, job)
            if job.state in _OPEN and (words := _waits_for(job)) != said:
                progress.console.print(words, markup=False, highlight=False, soft_wrap=True)
                said = words
    words = f"Job {number}, {job.site}/{job.machine}: {job.state}"
    version = f" as {job.model_version}" if job.model_version else ""
    typer.echo(f"{words}{version}. {job.message or ''}".strip())
    if job.state is JobState.REJECTED:
        typer.echo(
            "The version that served before serves on. The machine is tried again when it has more events; "
            f"to let the new one serve all the same: alarmcast admin model promote {job.model_version} --force"
        )
    if job.state not in _ENDED_WELL:
        raise typer.Exit(1)


def _waits_for(job: JobView) -> str:
    """Say what a job that has not ended waits for, or which stage it is in; on a terminal or not."""
    words = f"Job {job.id}, {job.site}/{job.machine}: "
    if job.state is JobState.COLLECTING:
        return words + (job.message or "collecting. The service has not looked at the machine's data yet.")
    if job.state is JobState.QUEUED:
        return words + (job.message or "queued. Machines are learned one after the other.")
    return f"{words}{job.progress.stage}."


def _show(progress: Progress, bar: TaskID, job: JobView) -> None:
    now = job.progress
    words = [job.state if job.state is not JobState.RUNNING else now.stage]
    if now.total:
        words.append(f"{now.done}/{now.total}")
    if now.loss is not None:
        words.append(f"loss {now.loss:.4f}")
    if now.seconds_left:
        words.append(f"{now.seconds_left:.0f} s left")
    progress.update(bar, description=" ".join(words), completed=now.done or 0, total=now.total)
