"""``alarmcast config``: show and check the settings."""

import json
import logging
from typing import Annotated, Any

import typer

from service.app.config_check import examine, shown_url
from service.app.configuration import Configuration, configuration
from service.cli.arguments import Config, DataDir
from service.errors import InputRejected
from service.settings import PREFIX, Settings, secret_names

app = typer.Typer(help="Show and check the settings.", no_args_is_help=True)
_MARKS = {True: "OK  ", False: "FAIL", None: "WARN"}

Host = Annotated[str | None, typer.Option(help="Address of the API.")]
Port = Annotated[int | None, typer.Option(help="Port of the API; 0 takes a free one.", min=0, max=65535)]
BrokerHost = Annotated[str | None, typer.Option(help="Host of the MQTT broker.")]
BrokerPort = Annotated[int | None, typer.Option(help="Port of the MQTT broker.")]


@app.command("check")
def check(
    config: Config = None,
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    broker_host: BrokerHost = None,
    broker_port: BrokerPort = None,
) -> None:
    """Check the settings as serve would use them; exit code 1 on errors."""
    logging.disable(logging.CRITICAL)  # the findings contain the errors
    flags: dict[str, Any] = {
        "data_dir": data_dir,
        "host": host,
        "port": port,
        "broker_host": broker_host,
        "broker_port": broker_port,
    }
    try:
        configured = configuration(config=config, **flags)
    except InputRejected as error:
        typer.echo(f"{_MARKS[False]}  configuration: {error}")
        raise typer.Exit(1) from None
    for line in _lines(configured):
        typer.echo(line)
    typer.echo()
    failed = False
    for finding in examine(configured):
        failed = failed or finding.ok is False
        typer.echo(f"{_MARKS[finding.ok]}  {finding.check}: {finding.message}")
    raise typer.Exit(int(failed))


@app.command("show")
def show(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    config: Config = None,
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    broker_host: BrokerHost = None,
    broker_port: BrokerPort = None,
) -> None:
    """Show all settings with their values and origins; secrets are masked."""
    flags: dict[str, Any] = {
        "data_dir": data_dir,
        "host": host,
        "port": port,
        "broker_host": broker_host,
        "broker_port": broker_port,
    }
    configured = configuration(config=config, **flags)
    if as_json:
        typer.echo(json.dumps(_table(configured), indent=2))
        return
    for line in _lines(configured):
        typer.echo(line)


def _lines(configured: Configuration) -> list[str]:
    rows = [(name, _words(row["value"]), row["from"]) for name, row in _table(configured).items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}" for name, value, origin in rows]


def _words(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _table(configured: Configuration) -> dict[str, dict[str, Any]]:
    """Return all settings by name, with masked secrets."""
    values = configured.settings.model_dump(mode="json")
    for name in secret_names():
        if values[name] is not None:
            values[name] = shown_url(values[name]) if name == "database_url" else "***"
    return {
        name: {
            "value": values[name],
            "from": configured.origins.get(name, "default"),
            "variable": f"{PREFIX}{name.upper()}",
        }
        for name in Settings.model_fields
    }
