"""``alarmcast serve`` and ``alarmcast demo``."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from service import demo as demonstration
from service.bootstrap.configuration import load_settings
from service.bootstrap.exposure import insist_on_a_guarded_broker
from service.bootstrap.listening import listen, tls_options, url_of
from service.bootstrap.service import Service
from service.bootstrap.stores import open_stores

DataDir = Annotated[Path | None, typer.Option(help="Where database and weights live.")]
Host = Annotated[str | None, typer.Option(help="Address of the API.")]
Port = Annotated[int | None, typer.Option(help="Port of the API; 0 takes a free one.", min=0, max=65535)]


def serve(
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    broker_host: Annotated[str | None, typer.Option(help="Host of the MQTT broker.")] = None,
    broker_port: Annotated[int | None, typer.Option(help="Port of the MQTT broker.")] = None,
) -> None:
    """Take alarms from the broker, store them, forecast, and answer over REST."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    settings = load_settings(
        data_dir=data_dir, host=host, port=port, broker_host=broker_host, broker_port=broker_port
    )
    insist_on_a_guarded_broker(settings)
    tls_options(settings)  # files that cannot be used are told before anything is opened
    listener = listen(settings.host, settings.port)
    with listener, open_stores(settings, check=True) as stores:
        address = url_of(listener, tls=settings.tls_cert is not None)
        typer.echo(f"Alarmcast listens on {address}; its API is described at {address}/docs", err=True)
        Service(settings, stores).run(listener)


def demo(
    machines: Annotated[int, typer.Option(help="How many simulated machines.", min=1, max=100)] = 6,
    speed: Annotated[float, typer.Option(help="Plant seconds per wall second.", min=1, max=3600)] = 600.0,
    port: Annotated[int, typer.Option(help="Port of the API; 0 takes a free one.", min=0, max=65535)] = 8080,
    data_dir: DataDir = None,
    check: Annotated[bool, typer.Option("--check", help="Run headless until all works, say so, end.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that --check may take.", min=1)] = 600.0,
) -> None:
    """Run a broker, the service and a simulated fleet, all on this machine."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING, stream=sys.stderr)
    plan = demonstration.Plan(machines=machines, speed=speed, port=port, data_dir=data_dir)
    if check:
        demonstration.check(plan, timeout=timeout)
    else:
        demonstration.show(plan)
