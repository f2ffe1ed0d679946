"""``alarmcast admin machine``: who there is, and letting go."""

from typing import Annotated

import typer

from service.cli.arguments import DataDir, EdgeToml, MachineArgument, Reason, machine_id, secret_file
from service.cli.client import api
from service.cli.tables import Row, moment, show
from wire.enums import CredentialState
from wire.rest.machines import AgentView

app = typer.Typer(help="List machines, learn them again, let them in, let them go.", no_args_is_help=True)


@app.command("list")
def machine_list(data_dir: DataDir = None) -> None:
    """List machines, the state of their agents, and unregistered machines that publish."""
    with api(data_dir) as client:
        fleet = client.machines.list()
    titles = ("machine", "state", "agent", "last seen", "spooled", "zone", "name", "why")
    rows: list[Row] = [
        (f"{one.site}/{one.machine}", one.state, *_agent(one.agent), one.time_zone, one.name, one.reason or "")
        for one in fleet.machines
    ]
    rows += [
        (f"{found.site}/{found.machine}", "unregistered", "", moment(found.last_at), "", "", "", "")
        for found in fleet.unregistered
    ]
    show(titles, rows)


@app.command("refresh")
def machine_refresh(machine: MachineArgument, data_dir: DataDir = None) -> None:
    """Learn a machine again from its recent windows."""
    identity = machine_id(machine)
    with api(data_dir) as client:
        job = client.enrolment.refresh(identity)
    typer.echo(f"Job {job.id} is {job.state}. See how it goes: alarmcast admin watch {job.id}")


@app.command("retire")
def machine_retire(machine: MachineArgument, reason: Reason, data_dir: DataDir = None) -> None:
    """Let a machine go; its past stays, its share of the memory is free."""
    identity = machine_id(machine)
    with api(data_dir) as client:
        client.enrolment.retire(identity, reason=reason)
    typer.echo(f"{machine} is retired.")


@app.command("rotate")
def machine_rotate(machine: MachineArgument, edge_toml: EdgeToml = None, data_dir: DataDir = None) -> None:
    """Issue new credentials for the broker; an agent that is there with the old ones is thrown out."""
    identity = machine_id(machine)
    with secret_file(edge_toml) as keep, api(data_dir) as client:
        keep(client.credentials.rotate(identity).edge_toml)


@app.command("revoke")
def machine_revoke(machine: MachineArgument, reason: Reason, data_dir: DataDir = None) -> None:
    """Throw a machine's agent out at the broker, and let it in no more until its credentials are rotated."""
    identity = machine_id(machine)
    with api(data_dir) as client:
        revoked = client.credentials.revoke(identity, reason=reason)
    if revoked.state is CredentialState.NONE:
        typer.echo(f"{machine} has no credentials; there was nothing to revoke.")
    else:
        typer.echo(f"The credentials of {machine} are revoked. {revoked.note or ''}".strip())


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
        typer.confirm(f"All data of {machine} will be deleted permanently. Continue?", abort=True)
    identity = machine_id(machine)
    with api(data_dir) as client:
        erased = client.enrolment.erase(identity, reason=reason)
    learned = ", ".join(erased.learned_by) or "no version"
    typer.echo(f"{machine} is erased. It had been learned by {learned}.")


def _agent(agent: AgentView | None) -> tuple[str, str, str]:
    """Return an agent's state, when it was last seen, and its spooled events."""
    if agent is None:
        return "never seen", "", ""
    return "online" if agent.online else "offline", moment(agent.last_seen_at), str(agent.spooled or "")
