"""``alarmcast admin policy``: which likely alarms are worth a notification."""

from typing import Annotated, Any

import typer

from service.cli.arguments import DataDir, Reason
from service.cli.client import api
from service.cli.tables import Row, show
from wire.enums import Severity

app = typer.Typer(help="Notification policies of sites and webhooks: list, set.", no_args_is_help=True)


@app.command("list")
def policy_list(data_dir: DataDir = None) -> None:
    """Print the policy of every site, and how much it sent and held back in 30 days."""
    with api(data_dir) as client:
        policies = client.policies.list().policies
    rows: list[Row] = [(one.site, one.text, str(one.sent), str(one.held_back)) for one in policies]
    show(("site", "policy", "sent", "held back"), rows)


@app.command("set")
def policy_set(
    where: Annotated[str, typer.Argument(metavar="SITE|WEBHOOK", help="Site, or number of a webhook.")],
    reason: Reason,
    probability: Annotated[
        list[str] | None, typer.Option(help="Smallest probability, as high=0.5 or 0.6; repeatable.")
    ] = None,
    lift: Annotated[float, typer.Option(help="Smallest probability over usual rate.")] = 0.0,
    without: Annotated[list[str] | None, typer.Option(help="Severity or code left out; repeatable.")] = None,
    per_shift: Annotated[int | None, typer.Option(help="At most so many per machine and shift.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Set the notification policy of a site, or a webhook's own; what is not given has its default."""
    least = {"low": "0.6", "medium": "0.6", "high": "0.5"}
    for part in probability or ():
        severity, named, value = part.rpartition("=")
        least |= {severity: value} if named else dict.fromkeys(Severity, value)
    left_out = without or []
    policy: dict[str, Any] = {
        severity: {"probability": value, "lift": lift} for severity, value in least.items()
    } | {
        "exclude_severities": [one for one in left_out if not one.isdigit()],
        "exclude_codes": [int(one) for one in left_out if one.isdigit()],
        "per_shift": per_shift,
    }
    with api(data_dir) as client:
        if where.isdigit():
            text = client.webhooks.set_policy(int(where), policy, reason=reason).policy_text
        else:
            text = client.policies.set(where, policy, reason=reason).text
    typer.echo(text)
