"""``alarmcast admin webhook``, ``shelve`` and ``maintenance``."""

from typing import Annotated

import typer

from service.cli.arguments import DataDir, MachineArgument, Reason, machine_id, moment
from service.cli.client import api
from service.cli.tables import Row, show
from wire.enums import Severity
from wire.timestamps import isoformat

app = typer.Typer(help="HTTP receivers of notifications: list, add, test, remove.", no_args_is_help=True)
WebhookId = Annotated[int, typer.Argument(metavar="NUMBER", help="Number of the webhook.")]


@app.command("list")
def webhook_list(data_dir: DataDir = None) -> None:
    """List webhooks, without secrets."""
    with api(data_dir) as client:
        webhooks = client.webhooks.list().webhooks
    rows: list[Row] = [
        (
            str(webhook.id),
            webhook.url,
            webhook.severity,
            "/".join(filter(None, (webhook.site, webhook.machine))),
            "yes" if webhook.enabled else "no",
            webhook.error or "",
        )
        for webhook in webhooks
    ]
    show(("webhook", "url", "severity", "scope", "enabled", "error"), rows)


@app.command("add")
def webhook_add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Receiver of notifications, http or https.")],
    severity: Annotated[Severity, typer.Option(help="Minimum severity.")] = Severity.HIGH,
    site: Annotated[str | None, typer.Option(help="Only of this site.")] = None,
    machine: Annotated[str | None, typer.Option(help="Only of this machine of the site.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Send new notifications to a URL; the secret is printed only once."""
    with api(data_dir) as client:
        webhook = client.webhooks.add(url, severity=severity, site=site, machine=machine)
    typer.echo(f"Webhook {webhook.id} added. Its secret, shown only once: {webhook.secret}")


@app.command("test")
def webhook_test(number: WebhookId, data_dir: DataDir = None) -> None:
    """Send a signed test message and print the response; exit code 1 if it was not accepted."""
    with api(data_dir) as client:
        result = client.webhooks.test(number)
    typer.echo(f"{result.status or 'no status'} in {result.seconds} s: {result.answer or '(empty)'}")
    if not result.delivered:
        raise typer.Exit(1)


@app.command("remove")
def webhook_remove(number: WebhookId, reason: Reason, data_dir: DataDir = None) -> None:
    """Delete a webhook, its secret and its deliveries."""
    with api(data_dir) as client:
        client.webhooks.remove(number, reason=reason)
    typer.echo(f"Webhook {number} removed.")


def shelve(
    machine: MachineArgument,
    code: Annotated[int, typer.Argument(metavar="CODE", help="Alarm code.")],
    minutes: Annotated[int, typer.Option(help="Duration, in plant time.")],
    reason: Reason,
    data_dir: DataDir = None,
) -> None:
    """Shelve an alarm of a machine; forecasts are not affected."""
    identity = machine_id(machine)
    with api(data_dir) as client:
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
    with api(data_dir) as client:
        window = client.maintenance.create(
            site, machine=machine if slash else None, since=begin, until=end, reason=reason
        )
    span = f"from {isoformat(window.start)} until {isoformat(window.until)}"
    typer.echo(f"Maintenance window {window.id} of {where}: {span}.")
