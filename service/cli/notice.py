"""``alarmcast admin webhook``, ``shelve``, ``maintenance``: who is told of likely alarms, and when nobody is."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from service.bootstrap.configuration import load_settings
from service.cli.api import call
from service.cli.arguments import DataDir, MachineArgument, Reason, machine_id
from wire.words import Severity

app = typer.Typer(help="Who is told of likely alarms: list, add, test, remove.", no_args_is_help=True)
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Which webhook.")]
Minutes = Annotated[int, typer.Option(help="For how long, in plant time.")]


@app.command("list")
def webhook_list(data_dir: DataDir = None) -> None:
    """List webhooks; secrets are not shown."""
    table = Table()
    for title in ("webhook", "address", "severity", "only", "enabled", "why not"):
        table.add_column(title, overflow="fold")
    for one in call(load_settings(data_dir=data_dir), "GET", "/v1/webhooks").json()["webhooks"]:
        only = "/".join(filter(None, (one["site"], one["machine"])))
        enabled = "yes" if one["enabled"] else "no"
        table.add_row(str(one["id"]), one["url"], one["severity"], only, enabled, one["trouble"] or "")
    Console().print(table)


@app.command("add")
def webhook_add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where notices go, http or https.")],
    severity: Annotated[Severity, typer.Option(help="Only alarms at least as bad.")] = Severity.HIGH,
    site: Annotated[str | None, typer.Option(help="Only this site's.")] = None,
    machine: Annotated[str | None, typer.Option(help="Only this machine's of the site.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Tell an address of likely alarms from now on; its secret is printed this once."""
    body = {"url": url, "severity": severity.value, "site": site, "machine": machine}
    made = call(load_settings(data_dir=data_dir), "POST", "/v1/webhooks", json=body).json()
    typer.echo(f"Webhook {made['id']} is told. Its secret, shown this once: {made['secret']}")


@app.command("test")
def webhook_test(number: Number, data_dir: DataDir = None) -> None:
    """Send a signed test and print what the receiver said; exit code 1 if it did not take it."""
    said = call(load_settings(data_dir=data_dir), "POST", f"/v1/webhooks/{number}/test").json()
    typer.echo(f"{said['status'] or 'no status'} in {said['seconds']} s: {said['answer'] or '(empty)'}")
    if not said["delivered"]:
        raise typer.Exit(1)


@app.command("remove")
def webhook_remove(number: Number, reason: Reason, data_dir: DataDir = None) -> None:
    """Forget a webhook, its secret and its deliveries."""
    call(load_settings(data_dir=data_dir), "DELETE", f"/v1/webhooks/{number}", params={"reason": reason})
    typer.echo(f"Webhook {number} is gone.")


def shelve(
    machine: MachineArgument,
    code: Annotated[int, typer.Argument(metavar="CODE", help="Which alarm.")],
    minutes: Minutes,
    reason: Reason,
    data_dir: DataDir = None,
) -> None:
    """Keep an alarm of a machine quiet for a while; forecasts do not change."""
    site, name = machine_id(machine)
    body = {"code": code, "minutes": minutes, "reason": reason}
    path = f"/v1/machines/{site}/{name}/shelves"
    made = call(load_settings(data_dir=data_dir), "POST", path, json=body).json()
    typer.echo(f"Shelf {made['id']}: {made['text']} of {machine} is not told of until {made['until']}.")


def maintenance(
    where: Annotated[str, typer.Argument(metavar="SITE[/MACHINE]", help="Which site or machine.")],
    until: Annotated[str, typer.Option(help="Until when, in plant time: 2026-11-20T14:00:00Z.")],
    reason: Reason,
    start: Annotated[str | None, typer.Option("--from", help="From when; now unless given.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Tell nothing of a machine or a site while people work on it."""
    site, slash, machine = where.partition("/")
    body = {"site": site, "machine": machine if slash else None, "from": start, "until": until, "reason": reason}
    made = call(load_settings(data_dir=data_dir), "POST", "/v1/maintenance", json=body).json()
    typer.echo(f"Window {made['id']}: nothing is told of {where} from {made['from']} until {made['until']}.")
