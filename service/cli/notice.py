"""``alarmcast admin webhook``, ``shelve``, ``maintenance``: who is told of likely alarms, and when nobody is."""

from typing import Annotated

import typer

from service.app.configuration import load_settings
from service.cli.arguments import DataDir, MachineArgument, Reason, machine_id, moment
from service.cli.client import api
from service.cli.tables import Row, show
from wire.enums import Severity
from wire.timestamps import isoformat

app = typer.Typer(help="Who is told of likely alarms: list, add, test, remove.", no_args_is_help=True)
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Which webhook.")]
Minutes = Annotated[int, typer.Option(help="For how long, in plant time.")]


@app.command("list")
def webhook_list(data_dir: DataDir = None) -> None:
    """List webhooks; secrets are not shown."""
    titles = ("webhook", "address", "severity", "only", "enabled", "why not")
    rows: list[Row] = []
    with api(load_settings(data_dir=data_dir)) as client:
        webhooks = client.webhooks.list().webhooks
    for one in webhooks:
        only = "/".join(filter(None, (one.site, one.machine)))
        rows.append((str(one.id), one.url, one.severity, only, "yes" if one.enabled else "no", one.error or ""))
    show(titles, rows)


@app.command("add")
def webhook_add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where notices go, http or https.")],
    severity: Annotated[Severity, typer.Option(help="Only alarms at least as bad.")] = Severity.HIGH,
    site: Annotated[str | None, typer.Option(help="Only this site's.")] = None,
    machine: Annotated[str | None, typer.Option(help="Only this machine's of the site.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Tell an address of likely alarms from now on; its secret is printed this once."""
    with api(load_settings(data_dir=data_dir)) as client:
        made = client.webhooks.add(url, severity=severity, site=site, machine=machine)
    typer.echo(f"Webhook {made.id} is told. Its secret, shown this once: {made.secret}")


@app.command("test")
def webhook_test(number: Number, data_dir: DataDir = None) -> None:
    """Send a signed test and print what the receiver said; exit code 1 if it did not take it."""
    with api(load_settings(data_dir=data_dir)) as client:
        said = client.webhooks.test(number)
    typer.echo(f"{said.status or 'no status'} in {said.seconds} s: {said.answer or '(empty)'}")
    if not said.delivered:
        raise typer.Exit(1)


@app.command("remove")
def webhook_remove(number: Number, reason: Reason, data_dir: DataDir = None) -> None:
    """Forget a webhook, its secret and its deliveries."""
    with api(load_settings(data_dir=data_dir)) as client:
        client.webhooks.remove(number, reason=reason)
    typer.echo(f"Webhook {number} is gone.")


def shelve(
    machine: MachineArgument,
    code: Annotated[int, typer.Argument(metavar="CODE", help="Which alarm.")],
    minutes: Minutes,
    reason: Reason,
    data_dir: DataDir = None,
) -> None:
    """Keep an alarm of a machine quiet for a while; forecasts do not change."""
    identity = machine_id(machine)
    with api(load_settings(data_dir=data_dir)) as client:
        made = client.shelves.shelve(identity, code, minutes=minutes, reason=reason)
    typer.echo(f"Shelf {made.id}: {made.text} of {machine} is not told of until {isoformat(made.until)}.")


def maintenance(
    where: Annotated[str, typer.Argument(metavar="SITE[/MACHINE]", help="Which site or machine.")],
    until: Annotated[str, typer.Option(help="Until when, in plant time: 2026-11-20T14:00:00Z.")],
    reason: Reason,
    start: Annotated[str | None, typer.Option("--from", help="From when; now unless given.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Tell nothing of a machine or a site while people work on it."""
    site, slash, machine = where.partition("/")
    end, begin = moment(until), moment(start) if start else None
    with api(load_settings(data_dir=data_dir)) as client:
        made = client.maintenance.create(
            site, machine=machine if slash else None, since=begin, until=end, reason=reason
        )
    span = f"from {isoformat(made.start)} until {isoformat(made.until)}"
    typer.echo(f"Window {made.id}: nothing is told of {where} {span}.")
