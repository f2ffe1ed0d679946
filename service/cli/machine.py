"""``alarmcast admin machine``: who there is, and letting go."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from service.bootstrap.configuration import load_settings
from service.cli.api import call
from service.cli.arguments import DataDir, MachineArgument, Reason, machine_id

app = typer.Typer(help="List machines, learn them again, let them go.", no_args_is_help=True)


@app.command("list")
def machine_list(data_dir: DataDir = None) -> None:
    """List machines, how their agents are, and who knocks without being enrolled."""
    fleet = call(load_settings(data_dir=data_dir), "GET", "/v1/machines").json()
    table = Table()
    for title in ("machine", "name", "zone", "state", "agent", "heard", "spooled", "why"):
        table.add_column(title, overflow="fold")  # an id cut short names nothing
    for one in fleet["machines"]:
        agent = one["agent"] or {}
        heard = {True: "online", False: "offline", None: "never heard"}[agent.get("online")]
        table.add_row(
            f"{one['site']}/{one['machine']}",
            one["name"],
            one["time_zone"],
            one["state"],
            heard,
            agent.get("heard_at", ""),
            str(agent.get("spooled") or ""),
            one["reason"] or "",
        )
    for knock in fleet["knocking"]:
        table.add_row(f"{knock['site']}/{knock['machine']}", "", "", "knocking", "", knock["last_at"], "", "")
    Console().print(table)


@app.command("refresh")
def machine_refresh(machine: MachineArgument, data_dir: DataDir = None) -> None:
    """Learn a machine again from its recent windows."""
    job = call(load_settings(data_dir=data_dir), "POST", f"{_path(machine)}/refresh").json()
    typer.echo(f"Job {job['id']} is {job['state']}. See how it goes: alarmcast admin watch {job['id']}")


@app.command("retire")
def machine_retire(machine: MachineArgument, reason: Reason, data_dir: DataDir = None) -> None:
    """Let a machine go; its past stays, its share of the memory is free."""
    call(load_settings(data_dir=data_dir), "POST", f"{_path(machine)}/retire", json={"reason": reason})
    typer.echo(f"{machine} is retired.")


@app.command("erase")
def machine_erase(
    machine: MachineArgument,
    reason: Reason,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Remove a machine's events, memory and exams for good."""
    if not yes:
        typer.confirm(f"All that {machine} has ever told will be gone for good. Go on?", abort=True)
    erased = call(
        load_settings(data_dir=data_dir), "POST", f"{_path(machine)}/erase", json={"reason": reason}
    ).json()
    learned = ", ".join(erased["learned_by"]) or "no version"
    typer.echo(f"{machine} is erased. It had been learned by {learned}.")


def _path(machine: str) -> str:
    identity = machine_id(machine)
    return f"/v1/machines/{identity.site}/{identity.machine}"
