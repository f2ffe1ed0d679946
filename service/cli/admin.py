"""``alarmcast admin``: what an admin does, through the running service if there is one."""

from http import HTTPStatus
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from service.bootstrap import learn_first_model, load_settings, open_stores, plant_clock, time_policy
from service.cli.api import call
from service.errors import InputRejected
from service.flows.load_history import load_history
from wire.identity import MachineId
from wire.micros import moment
from wire.moment import isoformat

app = typer.Typer(help="Machines, catalogue, history, learning.", no_args_is_help=True)
machine_app = typer.Typer(help="Register and list machines.", no_args_is_help=True)
catalogue_app = typer.Typer(help="The alarm catalogue.", no_args_is_help=True)
history_app = typer.Typer(help="A machine's past.", no_args_is_help=True)
app.add_typer(machine_app, name="machine")
app.add_typer(catalogue_app, name="catalogue")
app.add_typer(history_app, name="history")

DataDir = Annotated[Path | None, typer.Option(help="Where database and weights live.")]
MachineArgument = Annotated[str, typer.Argument(metavar="SITE/MACHINE", help="Which machine.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="Which file.")]


@machine_app.command("add")
def machine_add(
    machine: MachineArgument,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    time_zone: Annotated[str, typer.Option(help="The plant's zone, like Europe/Rome.")] = "UTC",
    data_dir: DataDir = None,
) -> None:
    """Register a machine, so that its alarms are taken."""
    identity = _machine(machine)
    body = {
        "site": identity.site,
        "machine": identity.machine,
        "name": name or identity.machine,
        "time_zone": time_zone,
    }
    answer = call(load_settings(data_dir=data_dir), "POST", "/v1/machines", json=body)
    typer.echo(
        f"{identity} is registered."
        if answer.status_code == HTTPStatus.CREATED
        else f"{identity} was registered already."
    )


@machine_app.command("list")
def machine_list(data_dir: DataDir = None) -> None:
    """List machines, how their agents are, and who knocks without being registered."""
    fleet = call(load_settings(data_dir=data_dir), "GET", "/v1/machines").json()
    table = Table()
    for title in ("machine", "name", "zone", "agent", "heard", "spooled"):
        table.add_column(title, overflow="fold")  # an id cut short names nothing
    for one in fleet["machines"]:
        agent = one["agent"] or {}
        state = {True: "online", False: "offline", None: "never heard"}[agent.get("online")]
        table.add_row(
            f"{one['site']}/{one['machine']}",
            one["name"],
            one["time_zone"],
            state,
            agent.get("heard_at", ""),
            str(agent.get("spooled") or ""),
        )
    for knock in fleet["knocking"]:
        table.add_row(f"{knock['site']}/{knock['machine']}", "", "", "knocking", knock["last_at"], "")
    Console().print(table)


@catalogue_app.command("load")
def catalogue_load(file: File, data_dir: DataDir = None) -> None:
    """Add a CSV with the columns code, text, severity (low, medium, high) and target (yes, no)."""
    settings = load_settings(data_dir=data_dir)
    answer = call(
        settings,
        "POST",
        "/v1/catalogue",
        content=_read(file),
        headers={"Content-Type": "text/csv; charset=utf-8"},
    ).json()
    typer.echo(f"{answer['entries']} codes read, {answer['new']} of them new.")


@history_app.command("load")
def history_load(
    machine: MachineArgument,
    file: File,
    serial: Annotated[str | None, typer.Option(help="Take only rows of this serial.")] = None,
    time_zone: Annotated[str, typer.Option(help="Zone of timestamps that name none.")] = "UTC",
    data_dir: DataDir = None,
) -> None:
    """Load a log (timestamp,alarm,serial; gzipped or not); loading it twice changes nothing."""
    identity = _machine(machine)
    settings = load_settings(data_dir=data_dir)
    with open_stores(settings) as stores, Progress(transient=True) as progress:
        task = progress.add_task(f"Loading {file.name}", total=None)
        loaded = load_history(
            stores.machines.get(identity),
            file,
            serial=serial,
            zone=_zone(time_zone),
            recorder=stores.events,
            now=plant_clock(settings).now(),
            policy=time_policy(settings),
            progress=lambda rows: progress.update(task, completed=rows),
        )
    typer.echo(
        f"{loaded.stored} events stored, {loaded.duplicates} known already, "
        f"{loaded.flagged} flagged for their time, {loaded.rejected} rows quarantined."
    )
    if loaded.last_us is not None:
        after = isoformat(moment(loaded.last_us + 1))
        typer.echo(f"If the machine's agent follows the same log, give it source.since = {after}")


@app.command("learn")
def learn(
    data_dir: DataDir = None,
    epochs: Annotated[int, typer.Option(help="Passes over the data.", min=1, max=1000)] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
) -> None:
    """Learn a model from all machines' stored history and let it serve; the service must not be running."""
    settings = load_settings(data_dir=data_dir)
    with Progress(transient=True) as progress:
        task = progress.add_task("Learning", total=epochs)
        version = learn_first_model(
            settings, epochs=epochs, seed=seed, progress=lambda epoch: progress.update(task, completed=epoch)
        )
    typer.echo(f"{version.name} serves: {version.report['summary']}")


def _machine(text: str) -> MachineId:
    try:
        return MachineId.parse(text)
    except ValueError as error:
        raise InputRejected(str(error)) from None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise InputRejected(f"{name!r} is no time zone; write one like Europe/Rome.") from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputRejected(f"Cannot read {file}: {error.strerror}.") from None
