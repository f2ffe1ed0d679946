"""A broker that forgets, and a broker that is away for long."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.conftest import wait_until
from tests.faults.environment import FaultEnvironment, LoadedSystem, insist
from tests.faults.registry import Effort, fault

_DRAIN_RATE = 2_000  # events a second and agent


@fault("broker's memory deleted or truncated", quick=Effort(1), full=Effort(10))
def forgotten(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """mosquitto.db is emptied, cut in half, deleted; the service notices and says so."""
    for _ in range(effort.runs):
        with env.system() as system:
            system.recovered()
            for damage in (_empty, _cut_in_half, Path.unlink):
                system.plant.broker.save()
                system.plant.broker.kill()
                damage(system.plant.broker.folder / "mosquitto.db")
                system.plant.broker.start()
            yield system.recovered()
            _insist_on_a_warning(system)


def _empty(memory: Path) -> None:
    memory.write_bytes(b"")


def _cut_in_half(memory: Path) -> None:
    """Mosquitto may refuse to start with half of its memory; a person then takes the file away."""
    with memory.open("r+b") as file:
        file.truncate(memory.stat().st_size // 2)
    command = [shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", str(memory.with_name("mosquitto.conf"))]
    with suppress(subprocess.TimeoutExpired):
        if subprocess.run(command, check=False, timeout=2, capture_output=True).returncode:
            memory.unlink()


def _insist_on_a_warning(system: LoadedSystem) -> None:
    wait_until(
        lambda: "broker_session" in system.plant.api.health.status().warnings,
        "the service warns of a lost session",
    )


@fault("broker down for long", quick=Effort(1, seconds=30), full=Effort(1, seconds=3600))
def down_for_long(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Agents collect a backlog of 100,000 events at least, then drain it fast enough, in order."""
    for _ in range(effort.runs):
        with env.system(machines=1, rate=max(100_000 / effort.seconds, 50)) as system:
            yield _backlog(system, effort.seconds)


def _backlog(system: LoadedSystem, seconds: float) -> float:
    (machine,) = system.agents
    plant, load = system.plant, system.load
    system.recovered()
    plant.broker.kill()
    time.sleep(seconds)
    load.stop()
    wait_until(lambda: plant.given(machine) >= load.written[machine], "all is spooled", 120)
    backlog = plant.spooled(machine)
    plant.broker.start()
    took = system.recovered(600)
    rate = backlog / took
    insist(rate >= _DRAIN_RATE, f"a backlog drains at {_DRAIN_RATE} events/s; {backlog} took {took:.1f} s")
    arrived = plant.arrived(machine)
    insist(arrived == sorted(arrived), "a backlog arrives in order")
    return took
