"""What a demo is made of: which machines stand where, and how fast their time runs."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

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
