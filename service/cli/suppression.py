"""``alarmcast admin shelve`` and ``maintenance``: suppress notifications for a limited time."""

from typing import Annotated

import typer

from service.app.configuration import load_settings
from service.cli.arguments import DataDir, MachineArgument, Reason, machine_id, moment
from service.cli.client import api
from wire.timestamps import isoformat


def shelve(
    machine: MachineArgument,
    code: Annotated[int, typer.Argument(metavar="CODE", help="Alarm code.")],
    minutes: Annotated[int, typer.Option(help="Duration, in plant time.")],
    reason: Reason,
    data_dir: DataDir = None,
) -> None:
    """Shelve an alarm of a machine; forecasts are not affected."""
    identity = machine_id(machine)
    with api(load_settings(data_dir=data_dir)) as client:
        shelved = client.shelves.shelve(identity, code, minutes=minutes, reason=reason)
    typer.echo(f"Shelved alarm {shelved.id}: {shelved.text} of {machine} until {isoformat(shelved.until)}.")


def maintenance(
    where: Annotated[str, typer.Argument(metavar="SITE[/MACHINE]", help="Site or machine.")],
    until: Annotated[str, typer.Option(help="End, in plant time: 2026-11-20T14:00:00Z.")],
    reason: Reason,
    start: Annotated[str | None, typer.Option("--from", help="Start; default now.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Suppress notifications of a machine or a site during maintenance."""
    site, slash, machine = where.partition("/")
    end, begin = moment(until), moment(start) if start else None
    with api(load_settings(data_dir=data_dir)) as client:
        window = client.maintenance.create(
            site, machine=machine if slash else None, since=begin, until=end, reason=reason
        )
    span = f"from {isoformat(window.start)} until {isoformat(window.until)}"
    typer.echo(f"Maintenance window {window.id} of {where}: {span}.")
