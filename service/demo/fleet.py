"""The demo's agents: one real ``alarmcast-edge`` process per machine."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from service.demo.plan import BACKLOG, SEED, DemoMachine
from wire.clock import PlantClock


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
