"""``alarmcast serve`` and ``alarmcast demo``."""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from service.app.config_check import require_secured_broker
from service.app.configuration import load_settings
from service.app.http_server import listen, require_tls, tls_options, url_of
from service.app.logs import set_up_logs
from service.app.service import Service
from service.app.stores import open_stores
from service.auth.users import FIRST
from service.cli.arguments import Config, DataDir
from service.settings import LogLevel
from wire.enums import ProcessRole

log = logging.getLogger(__name__)

Host = Annotated[str | None, typer.Option(help="Address of the API.")]
Port = Annotated[int | None, typer.Option(help="Port of the API; 0 takes a free one.", min=0, max=65535)]


def serve(
    config: Config = None,
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    broker_host: Annotated[str | None, typer.Option(help="Host of the MQTT broker.")] = None,
    broker_port: Annotated[int | None, typer.Option(help="Port of the MQTT broker.")] = None,
    roles: Annotated[
        str | None,
        typer.Option(help="Roles of this process, separated by commas: api, ingest, worker; default: all."),
    ] = None,
) -> None:
    """Run the service: ingest alarms, compute forecasts, serve REST and pages."""
    settings = load_settings(
        config=config,
        data_dir=data_dir,
        host=host,
        port=port,
        broker_host=broker_host,
        broker_port=broker_port,
        roles=roles,
    )
    set_up_logs(settings)
    require_tls(settings)
    require_secured_broker(settings)
    tls_options(settings)  # check the files before anything is opened
    listener = listen(settings.host, settings.port)
    with listener, open_stores(settings, check=True) as stores:
        address = url_of(listener, tls=settings.tls_cert is not None)
        log.info("Alarmcast listens on %s; its API is described at %s/docs", address, address)
        service = Service(settings, stores)
        password = service.auth.users.first_admin() if ProcessRole.API in service.roles else None
        if password is not None:
            _show_first_password(password, settings.data_dir)
        service.run(listener)


def _show_first_password(password: str, data_dir: Path) -> None:
    """Print the password on a terminal, otherwise write it to a private file, because logs are kept."""
    if sys.stderr.isatty():
        typer.echo(
            f"Sign in as {FIRST} with this one-time password: {password}\n"
            "It must be changed at the first sign-in. Lost it? alarmcast admin user password admin",
            err=True,
        )
        return
    file = data_dir / "first-password.txt"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as opened:
        opened.write(f"{password}\n")
    log.warning("sign in as %s with the one-time password in %s, then remove that file", FIRST, file)


def demo(
    machines: Annotated[int, typer.Option(help="How many simulated machines.", min=1, max=100)] = 6,
    speed: Annotated[float, typer.Option(help="Plant seconds per wall second.", min=1, max=3600)] = 600.0,
    port: Annotated[int, typer.Option(help="Port of the API; 0 takes a free one.", min=0, max=65535)] = 8080,
    data_dir: DataDir = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run headless until everything works, then exit.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that --check may take.", min=1)] = 600.0,
) -> None:
    """Run a broker, the service and a simulated fleet, all on this machine."""
    from service import demo as demonstration  # noqa: PLC0415 - serve needs no broker and no fleet of its own

    set_up_logs(load_settings(), least=LogLevel.WARNING)
    plan = demonstration.Plan(machines=machines, speed=speed, port=port, data_dir=data_dir)
    if check:
        demonstration.check(plan, timeout=timeout)
    else:
        demonstration.show(plan)
