"""``alarmcast admin model`` and ``jobs``: versions, promotions, the way back."""

from typing import Annotated

import typer

from service.cli.arguments import DataDir, Reason
from service.cli.client import api
from service.cli.tables import Row, moment, show

Serving = Annotated[
    str | None, typer.Option(help="The version that serves as far as you know; if another does, nothing changes.")
]

app = typer.Typer(help="Versions: list, promote, roll back.", no_args_is_help=True)


@app.command("list")
def model_list(data_dir: DataDir = None) -> None:
    """List versions, newest first."""
    with api(data_dir) as client:
        models = client.models.list().models
    titles = ("version", "standing", "parent", "machines", "created", "summary")
    rows: list[Row] = []
    for one in models:
        machines, created = str(len(one.machines)), moment(one.created_at)
        rows.append((one.version, one.status, one.parent or "", machines, created, one.summary))
    show(titles, rows)


@app.command("promote")
def model_promote(
    version: str,
    reason: Reason,
    *,
    force: Annotated[bool, typer.Option("--force", help="Even if the gate rejected it.")] = False,
    serving: Serving = None,
    data_dir: DataDir = None,
) -> None:
    """Let a version serve."""
    with api(data_dir) as client:
        client.models.promote(version, reason=reason, force=force, serving=serving)
    typer.echo(f"{version} serves.")


@app.command("rollback")
def model_rollback(reason: Reason, serving: Serving = None, data_dir: DataDir = None) -> None:
    """Let the version serve again that the champion was learned from."""
    with api(data_dir) as client:
        back = client.models.roll_back(reason=reason, serving=serving)
    typer.echo(f"{back.version} serves.")


def jobs(data_dir: DataDir = None) -> None:
    """List the latest jobs."""
    with api(data_dir) as client:
        listed = client.jobs.list().jobs
    titles = ("job", "machine", "kind", "state", "stage", "version", "message")
    rows = [
        (
            str(one.id),
            f"{one.site}/{one.machine}",
            one.kind,
            one.state,
            one.progress.stage,
            one.model_version or "",
            one.message or "",
        )
        for one in listed
    ]
    show(titles, rows)
