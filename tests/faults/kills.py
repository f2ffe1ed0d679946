"""Power cuts: kill -9 at random moments under load."""

import time
from collections.abc import Callable, Iterator

from tests.faults.environment import Scene, Stage
from tests.faults.registry import Effort, fault


def _kill_broker(scene: Scene) -> None:
    scene.plant.broker.kill()
    scene.plant.broker.start()


def _kill_service(scene: Scene) -> None:
    scene.plant.service.kill()
    scene.plant.service.start()


def _kill_agent(scene: Scene) -> None:
    for agent in scene.agents.values():
        agent.kill()
        agent.start()


def _killed(stage: Stage, effort: Effort, kill: Callable[[Scene], None]) -> Iterator[float]:
    with stage.scene() as scene:
        scene.recovered()
        for _ in range(effort.runs):
            time.sleep(stage.chance.uniform(0.1, 1.0))  # a random moment to be killed at
            kill(scene)
            yield scene.recovered()


@fault("broker killed", quick=Effort(3), full=Effort(100))
def broker_killed(stage: Stage, effort: Effort) -> Iterator[float]:
    """Mosquitto is killed under load and started again."""
    yield from _killed(stage, effort, _kill_broker)


@fault("service killed", quick=Effort(3), full=Effort(100))
def service_killed(stage: Stage, effort: Effort) -> Iterator[float]:
    """The service is killed under load and started again."""
    yield from _killed(stage, effort, _kill_service)


@fault("agent killed", quick=Effort(3), full=Effort(100))
def agent_killed(stage: Stage, effort: Effort) -> Iterator[float]:
    """All agents are killed under load and started again."""
    yield from _killed(stage, effort, _kill_agent)


@fault("all killed at random", quick=Effort(1, seconds=30), full=Effort(3, seconds=1800))
def all_killed(stage: Stage, effort: Effort) -> Iterator[float]:
    """Broker, service and agents are killed in any order, at any moment."""
    for _ in range(effort.runs):
        with stage.scene() as scene:
            end = time.monotonic() + effort.seconds
            while time.monotonic() < end:
                time.sleep(stage.chance.uniform(0.2, 2.5))
                stage.chance.choice([_kill_broker, _kill_service, _kill_agent])(scene)
            yield scene.recovered()
