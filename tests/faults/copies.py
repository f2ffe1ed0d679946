"""Files that come back or change places: a restored edge computer, a rotated log, a clock that is wrong."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.faults.environment import FaultEnvironment, LoadedSystem, insist, wait_until
from tests.faults.registry import Effort, fault


@fault("edge computer restored from an image", quick=Effort(2), full=Effort(20))
def restored_from_an_image(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Spool and log are put back to an earlier state, so that the agent gives its numbers a second time."""
    with env.system() as system:
        _store_some(system)
        machine, agent = next(iter(system.agents.items()))
        log, spool = system.load.logs[machine], system.plant.spool(machine)
        for _ in range(effort.runs):
            agent.stop()
            with system.load.paused():
                size, image = log.stat().st_size, spool.read_bytes()
            agent.start()
            system.recovered()
            agent.stop()
            with system.load.paused():
                _store_the_rest(system, machine)
                os.truncate(log, size)
                spool.write_bytes(image)
                for ending in ("-wal", "-shm"):
                    Path(f"{spool}{ending}").unlink(missing_ok=True)
            agent.start()
            yield system.recovered()


@fault("log replaced, or copied and truncated", quick=Effort(4), full=Effort(40))
def log_rotated(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """In turn a log is replaced by a copy of itself, and copied and emptied while its agent is stopped."""
    with env.system() as system:
        _store_some(system)
        machine, agent = next(iter(system.agents.items()))
        log = system.load.logs[machine]
        for run in range(effort.runs):
            if run % 2:
                agent.stop()
            with system.load.paused():
                copy = log.with_name(f"{log.name}.1")
                shutil.copy(log, copy)
                if run % 2:
                    os.truncate(log, 0)
                else:
                    copy.rename(log)
            if run % 2:
                agent.start()
            yield system.recovered()


@fault("clock 420 days ahead at a start", quick=Effort(1, seconds=10), full=Effort(5, seconds=30))
def clock_far_ahead(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """The service is started once with a clock far beyond the retention; nothing is deleted for its age."""
    with env.system() as system:
        service = system.plant.service
        right = service.environment
        for _ in range(effort.runs):
            _store_some(system)
            now = datetime.now(UTC)
            service.stop()
            service.environment = right | {
                "ALARMCAST_CLOCK_WALL_ORIGIN": now.isoformat(),
                "ALARMCAST_CLOCK_PLANT_ORIGIN": (now + timedelta(days=420)).isoformat(),
            }
            system.plant.start_service()
            wait_until(lambda: "clock" in system.plant.status()["warnings"], "the clock is warned of", 60)
            time.sleep(effort.seconds)  # retention has its chance
            service.stop()
            service.environment = right
            system.plant.start_service()
            yield system.recovered()


def _store_some(system: LoadedSystem) -> None:
    """Let every machine have stored alarms."""
    for machine in system.agents:
        system.load.raise_alarms(machine, 50)
    system.recovered()


def _store_the_rest(system: LoadedSystem, machine: str) -> None:
    """Let an agent read and deliver all that was raised, so that only the image is old."""
    agent = system.agents[machine]
    agent.start()
    system.recovered()
    wait_until(lambda: system.plant.spooled(machine) == 0, "the spool is empty", 60)
    agent.stop()
    insist(system.stored()[machine] >= system.load.written[machine], "all is stored before the image comes back")
