"""From starting a program to its being of use: against a bare interpreter importing what it is built on.

The service has a migrated database of six machines and a model, as after any restart, and is ready when
``/readyz`` says so. The agent, of one machine with alarms to tell, is of use when a subscriber has its first ones.
"""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.edge import starting as starting_an_agent
from benchmarks.report import Figure, run
from benchmarks.seeded_store import prepare
from benchmarks.servers import REPOSITORY, alarmcast, mosquitto

_MACHINES, _DAYS = 6, 7
_LEAST_ROUNDS = 5  # a start is short, and its time scatters
_SERVICE, _AGENT = "fastapi, sqlalchemy, nicegui", "paho.mqtt.client, pydantic"


def measure(rounds: int) -> list[Figure]:
    """Start and import in turns."""
    services, agents, new_agents = [], [], []
    imports: dict[str, list[float]] = {_SERVICE: [], _AGENT: []}
    with TemporaryDirectory() as folder, mosquitto() as broker:
        data_dir = Path(folder)
        prepare(data_dir, machines=_MACHINES, days=_DAYS)
        starting_a_service(data_dir, broker)  # the first one also writes caches that the others find
        for _ in range(max(rounds, _LEAST_ROUNDS)):
            for names, seconds in imports.items():
                seconds.append(importing(names))
            services.append(starting_a_service(data_dir, broker))
            agents.append(starting_an_agent(known=True))
            new_agents.append(starting_an_agent(known=False))
    return [
        Figure(
            "service, start to ready", f"importing {_SERVICE}", "s", imports[_SERVICE], services, 2, at_most=True
        ),
        Figure(
            "edge agent, start to first publish",
            f"importing {_AGENT}",
            "s",
            imports[_AGENT],
            agents,
            3,
            at_most=True,
            beside={"its very first start, s": new_agents},
        ),
    ]


def importing(names: str) -> float:
    """Return the seconds in which a bare interpreter imports modules and ends."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import {names}"], cwd=REPOSITORY, check=True)
    return time.monotonic() - started


def starting_a_service(data_dir: Path, broker: int) -> float:
    """Return the seconds from spawning ``alarmcast serve`` until it says that it is ready."""
    started = time.monotonic()
    with alarmcast(data_dir, broker):
        return time.monotonic() - started


if __name__ == "__main__":
    run(__doc__, measure, rounds=_LEAST_ROUNDS)
