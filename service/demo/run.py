"""``alarmcast demo``: raise the curtain, show or check, take everything down again."""

import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import FrameType

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from service.app.configuration import load_settings
from service.app.http_server import Server, listen, server_config, url_of
from service.app.service import Service
from service.app.stores import open_stores
from service.auth.users import FIRST
from service.demo.setup import Fleet, Plan, prepare
from service.errors import Unavailable
from service.forecasts.alarm_value import forecast_order
from service.messaging.embedded_broker import EmbeddedBroker
from service.settings import DynamicSecurity
from wire.clock import PlantClock
from wire.enums import JobState
from wire.forecasts import Forecast
from wire.identity import MachineId
from wire.mqtt import MqttVersion

_SHOWN = 3
_STYLES = {"ok": "green", "warming_up": "yellow", "stale": "red"}


def screen(service: Service, address: str, password: str) -> Panel:
    """Draw the present state of the service."""
    health = service.health()
    counts = health.counts
    head = Text.assemble(
        ("plant time ", "dim"), f"{service.clock.now():%a %Y-%m-%d %H:%M} UTC",
        ("   events in ", "dim"), f"{counts.get('stored', 0):,}",
        ("   forecasts stored ", "dim"), f"{counts.get('forecasts_stored', 0):,}",
        ("   model ", "dim"), health.model_version or "none yet",
    )  # fmt: skip
    learning = Text("\n".join(_jobs(service)), style="cyan")
    troubles = Text("\n".join(f"{part}: {why}" for part, why in health.errors.items()), style="red")
    foot = Text.assemble(
        ("the page: ", "dim"),
        address,
        ("   the API: ", "dim"),
        f"{address}/docs",
        ("   sign in: ", "dim"),
        f"{FIRST} / {password}",
        ("   end with Ctrl-C", "dim"),
    )
    return Panel(Group(head, learning, troubles, _machines(service), foot), title="Alarmcast")


def _jobs(service: Service) -> list[str]:
    """Return a line for what is being learned, and one for how many wait."""
    jobs = [job for job in service.stores.jobs.newest() if job.is_open]
    lines = []
    for job in jobs:
        if job.state is JobState.RUNNING:
            far = f" {job.progress.done}/{job.progress.total}" if job.progress.total else ""
            lines.append(f"learning {job.machine}: {job.progress.stage}{far}")
    waiting = len(jobs) - len(lines)
    return [*lines, f"{waiting} more wait to be learned"] if waiting else lines


def _machines(service: Service) -> Table:
    table = Table(expand=True)
    for title in ("machine", "agent", "status", "as of", "seen", "next 8 h, likeliest first (usual rate)"):
        table.add_column(title, no_wrap=title != "next 8 h, likeliest first (usual rate)")
    agents = service.stores.machines.agents()
    for forecast in _forecasts(service):
        machine = MachineId(forecast.site, forecast.machine)
        agent = agents.get(machine)
        online = "online" if agent and agent.online else "offline"
        table.add_row(
            str(machine),
            Text(online, style="green" if online == "online" else "red"),
            Text(forecast.status.value, style=_STYLES[forecast.status.value]),
            _hour(forecast.as_of),
            str(forecast.events_seen),
            _likely(forecast),
        )
    return table


def _forecasts(service: Service) -> list[Forecast]:
    try:
        newest = service.forecasts.cache.fresh_for(service.stores.machines.all())
    except Unavailable:
        return []
    return sorted((one.forecast for one in newest), key=forecast_order)


def _likely(forecast: Forecast) -> Text:
    text = Text()
    for alarm in forecast.alarms[:_SHOWN]:
        usual = "?" if alarm.base_rate is None else f"{alarm.base_rate:.0%}"
        style = "bold yellow" if alarm.expected else "dim"
        text.append(f"{alarm.code} {alarm.text} {alarm.probability:.0%} ({usual})   ", style=style)
    return text


def _hour(at: datetime) -> str:
    return f"{at:%H:%M}"


_DEFAULT_DIR = Path("data/demo")


@dataclass(frozen=True)
class Stage:
    """A demo that is running."""

    service: Service
    fleet: Fleet
    address: str
    started: datetime
    password: str  # of its own admin, new at each start


def show(plan: Plan) -> None:
    """Run until Ctrl-C, with a live screen."""
    console = Console()
    with _stage(plan, plan.data_dir or _DEFAULT_DIR, console.print) as stage:
        console.print(f"The page: {stage.address}   The API's documentation: {stage.address}/docs")
        console.print(f"Sign in as {FIRST} with the password {stage.password}")
        with (
            Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
            _stop_signals() as received,
        ):
            while not received:
                live.update(screen(stage.service, stage.address, stage.password), refresh=console.is_terminal)
                time.sleep(0.5)


def check(plan: Plan, *, timeout: float) -> None:
    """Run headless until every machine has a forecast made from events that came over MQTT, then say so."""
    started = time.monotonic()
    with TemporaryDirectory() as folder, _stage(plan, plan.data_dir or Path(folder), _say_aside) as stage:
        while missing := _without_live_forecast(stage):
            if time.monotonic() - started > timeout:
                raise Unavailable(
                    f"After {timeout:.0f} s there is still no forecast from live events for {', '.join(missing)}."
                )
            _insist_on_agents(stage)
            time.sleep(0.2)
        health = stage.service.health()
        result = {
            "machines": plan.machines,
            "events": health.counts.get("stored", 0),
            "forecasts": health.counts["forecasts_stored"],
            "model_version": health.model_version,
            "seconds": round(time.monotonic() - started, 1),
        }
    typer.echo(json.dumps(result))


@contextmanager
def _stage(plan: Plan, data_dir: Path, say: Callable[[str], None]) -> Iterator[Stage]:
    listener = listen("127.0.0.1", plan.port)
    with listener:
        base = load_settings(data_dir=data_dir, port=plan.port, broker_mqtt_version=MqttVersion.V311)
        start = prepare(plan, base, say)
        clock = PlantClock(datetime.now(UTC), start, plan.speed)
        broker_port = _free_port()
        settings = load_settings(
            data_dir=data_dir,
            port=plan.port,
            broker_port=broker_port,
            broker_mqtt_version=MqttVersion.V311,
            broker_dynamic_security=DynamicSecurity.OFF,  # the embedded broker has none; it is on loopback only
            clock_wall_origin=clock.wall_origin,
            clock_plant_origin=clock.plant_origin,
            clock_speed=clock.speed,
            open_docs=True,  # who runs the demo is the only one who can reach it
        )
        broker = EmbeddedBroker(broker_port)
        broker.start()
        try:
            with open_stores(settings) as stores:
                service = Service(settings, stores)
                password = service.auth.users.reset_demo_admin(FIRST)
                fleet = Fleet(plan.fleet(), broker_port, clock, data_dir / "agents")
                with _serving(service, listener) as address:
                    fleet.start()
                    try:
                        yield Stage(service, fleet, address, start, password)
                    finally:
                        fleet.stop()
        finally:
            broker.stop()


@contextmanager
def _serving(service: Service, listener: socket.socket) -> Iterator[str]:
    """Serve the API from a thread; the main one draws or checks."""
    address = url_of(listener)
    service.announce(address)
    server = Server(server_config(service.asgi_app(), service.settings), ending=service.forecasts.streams.close)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="api", daemon=True)
    service.start()
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        service.stop()


def _without_live_forecast(stage: Stage) -> list[str]:
    """Return the machines that have no stored forecast whose evidence holds an event that came over MQTT."""
    stores = stage.service.stores
    missing = []
    agents = stores.machines.agents()
    for machine in (stores.machines.get(one.id) for one in stage.fleet.machines):
        agent = agents.get(machine.id)
        spoken = agent and agent.epoch and stores.events.heard_since(machine, agent.epoch, stage.started)
        if not spoken or not stores.forecasts.any_with_evidence(machine, after=stage.started):
            missing.append(str(machine.id))
    return missing


def _insist_on_agents(stage: Stage) -> None:
    for machine, agent in zip(stage.fleet.machines, stage.fleet.agents, strict=True):
        if agent.poll() is not None:
            log = stage.fleet.folder / f"{machine.id.site}-{machine.id.machine}.log"
            raise Unavailable(f"The agent of {machine.id} ended with code {agent.returncode}; {log} says why.")


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Yield a list that fills when SIGINT or SIGTERM arrives."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _say_aside(text: str) -> None:
    typer.echo(text, err=True)
