"""The demo: its plan, its agents, enrolled machines and loaded history."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from service.app.stores import Stores, open_stores
from service.errors import Unavailable
from service.ingest.build import time_policy
from service.learning.history_file import ImportFile
from service.learning.history_import import load_history
from service.learning.models import NewMachine
from service.machines.catalogue import parse_catalogue
from service.settings import Settings
from wire.clock import PlantClock
from wire.identity import MachineId

SEED = 19  # a fleet of which no machine rests for days on end
HISTORY_DAYS = 60
# The last days of the past are not loaded: they wait at the machines and come over MQTT, as after a cut line.
BACKLOG = timedelta(days=3)
_SITES = (("padova", "Europe/Rome"), ("lyon", "Europe/Paris"), ("graz", "Europe/Vienna"))


@dataclass(frozen=True)
class DemoMachine:
    """One simulated machine; ``index`` chooses its personality."""

    index: int
    id: MachineId
    name: str
    time_zone: str


@dataclass(frozen=True)
class Plan:
    """How large and how fast a demo is, and where it keeps its data."""

    machines: int
    speed: float
    port: int
    data_dir: Path | None = None

    def fleet(self) -> list[DemoMachine]:
        """Return the machines, spread over three plants."""
        fleet = []
        for index in range(self.machines):
            site, zone = _SITES[index % len(_SITES)]
            number = index // len(_SITES) + 1
            fleet.append(
                DemoMachine(index, MachineId(site, f"filler-{number}"), f"Filler {number}, {site.title()}", zone)
            )
        return fleet


@dataclass
class Fleet:
    """Starts the agents, and ends them by their own process ids."""

    machines: list[DemoMachine]
    broker_port: int
    clock: PlantClock
    folder: Path
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start one agent a machine."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for machine in self.machines:
            log = (self.folder / f"{machine.id.site}-{machine.id.machine}.log").open("ab")
            with log:
                self.agents.append(subprocess.Popen(self._command(machine), stdout=log, stderr=log))  # noqa: S603

    def stop(self) -> None:
        """Ask every agent to stop, and insist."""
        for agent in self.agents:
            agent.terminate()
        for agent in self.agents:
            try:
                agent.wait(timeout=5)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()

    def _command(self, machine: DemoMachine) -> list[str]:
        site, name = machine.id
        origin = self.clock.plant_origin or self.clock.wall_origin
        options = {
            "site": site,
            "machine": name,
            "spool-path": self.folder / f"{site}-{name}.sqlite3",
            "broker-port": self.broker_port,
            "broker-mqtt-version": "3.1.1",
            "source-kind": "simulated",
            "source-seed": SEED,
            "source-index": machine.index,
            "source-since": (origin - BACKLOG).isoformat(),
            "clock-wall-origin": self.clock.wall_origin.isoformat(),
            "clock-plant-origin": origin.isoformat(),
            "clock-speed": self.clock.speed,
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        return [sys.executable, "-m", "edge_agent", "run", *flags]


def prepare(plan: Plan, settings: Settings, say: Callable[[str], None]) -> datetime:
    """Make the store ready and return the plant time at which the demo goes on.

    A store that a demo has used before goes on where it ended, with the machines it lacks added.
    """
    with open_stores(settings) as stores:
        last = stores.machines.latest_moment()
        start = max(last, datetime.now(UTC)) if last else datetime.now(UTC)
        known = {machine.id for machine in stores.machines.all(retired=True)}
        new = [machine for machine in plan.fleet() if machine.id not in known]
        if new:
            say(f"Simulating {HISTORY_DAYS} days of history for {len(new)} machines …")
            _seed(stores, settings, plan, new, start)
    return start


def _seed(stores: Stores, settings: Settings, plan: Plan, new: list[DemoMachine], start: datetime) -> None:
    """Enrol the machines with their past; the running service then learns them one after the other."""
    stores.catalogue.merge(parse_catalogue(_catalogue()))
    with TemporaryDirectory() as folder:
        log = Path(folder) / "history.csv"
        options = {
            "--machines": plan.machines,
            "--days": HISTORY_DAYS,
            "--seed": SEED,
            "--end": (start - BACKLOG).isoformat(),
            "--out": log,
        }
        flags = [str(part) for option in options.items() for part in option]
        _run([sys.executable, "-m", "edge_agent", "simulate", *flags], "simulate the fleet's history")
        for machine in new:
            wish = NewMachine(machine.id, machine.name, machine.time_zone)
            stores.enrolments.enrol(wish, key=None, who="demo", at=datetime.now(UTC), plant_at=start)
            load_history(
                stores.machines.get(machine.id),
                ImportFile(log, serial=str(machine.index)),
                recorder=stores.events,
                now=start,
                policy=time_policy(settings),
            )


def _run(command: list[str], purpose: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own modules
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Unavailable(f"The demo could not {purpose}: {last}")


def _catalogue() -> str:
    return files("edge_agent.simulator").joinpath("catalogue.csv").read_text(encoding="utf-8")
