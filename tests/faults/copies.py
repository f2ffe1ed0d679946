"""Files that come back or change places: a restored edge computer, a rotated log, a clock that is wrong."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.faults.environment import Scene, Stage, insist, wait_until
from tests.faults.registry import Effort, fault


@fault("edge computer restored from an image", quick=Effort(2), full=Effort(20))
def restored_from_an_image(stage: Stage, effort: Effort) -> Iterator[float]:
    """Spool and log are put back to an earlier state, so that the agent gives its numbers a second time."""
    with stage.scene() as scene:
        _store_some(scene)
        machine, agent = next(iter(scene.agents.items()))
        log, spool = scene.load.logs[machine], scene.plant.spool(machine)
        for _ in range(effort.runs):
            agent.stop()
            with scene.load.paused():
                size, image = log.stat().st_size, spool.read_bytes()
            agent.start()
            scene.recovered()
            agent.stop()
            with scene.load.paused():
                _store_the_rest(scene, machine)
                os.truncate(log, size)
                spool.write_bytes(image)
                for ending in ("-wal", "-shm"):
                    Path(f"{spool}{ending}").unlink(missing_ok=True)
            agent.start()
            yield scene.recovered()


@fault("log replaced, or copied and truncated", quick=Effort(4), full=Effort(40))
def log_rotated(stage: Stage, effort: Effort) -> Iterator[float]:
    """In turn a log is replaced by a copy of itself, and copied and emptied while its agent is stopped."""
    with stage.scene() as scene:
        _store_some(scene)
        machine, agent = next(iter(scene.agents.items()))
        log = scene.load.logs[machine]
        for run in range(effort.runs):
            if run % 2:
                agent.stop()
            with scene.load.paused():
                copy = log.with_name(f"{log.name}.1")
                shutil.copy(log, copy)
                if run % 2:
                    os.truncate(log, 0)
                else:
                    copy.rename(log)
            if run % 2:
                agent.start()
            yield scene.recovered()


@fault("clock 420 days ahead at a start", quick=Effort(1, seconds=10), full=Effort(5, seconds=30))
def clock_far_ahead(stage: Stage, effort: Effort) -> Iterator[float]:
    """The service is started once with a clock far beyond the retention; nothing is deleted for its age."""
    with stage.scene() as scene:
        service = scene.plant.service
        right = service.environment
        for _ in range(effort.runs):
            _store_some(scene)
            now = datetime.now(UTC)
            service.stop()
            service.environment = right | {
                "ALARMCAST_CLOCK_WALL_ORIGIN": now.isoformat(),
                "ALARMCAST_CLOCK_PLANT_ORIGIN": (now + timedelta(days=420)).isoformat(),
            }
            scene.plant.start_service()
            wait_until(lambda: "clock" in scene.plant.status()["warnings"], "the clock is warned of", 60)
            time.sleep(effort.seconds)  # retention has its chance
            service.stop()
            service.environment = right
            scene.plant.start_service()
            yield scene.recovered()


def _store_some(scene: Scene) -> None:
    """Let every machine have stored alarms."""
    for machine in scene.agents:
        scene.load.raise_alarms(machine, 50)
    scene.recovered()


def _store_the_rest(scene: Scene, machine: str) -> None:
    """Let an agent read and deliver all that was raised, so that only the image is old."""
    agent = scene.agents[machine]
    agent.start()
    scene.recovered()
    wait_until(lambda: scene.plant.spooled(machine) == 0, "the spool is empty", 60)
    agent.stop()
    insist(scene.stored()[machine] >= scene.load.written[machine], "all is stored before the image comes back")
