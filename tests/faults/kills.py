"""Power cuts: kill -9 at random moments under load."""

import time
from collections.abc import Callable, Iterator

from tests.faults.environment import FaultEnvironment, LoadedSystem
from tests.faults.registry import Effort, fault


def _kill_broker(system: LoadedSystem) -> None:
    system.plant.broker.kill()
    system.plant.broker.start()


def _kill_service(system: LoadedSystem) -> None:
    system.plant.service.kill()
    system.plant.service.start()


def _kill_agent(system: LoadedSystem) -> None:
    for agent in system.agents.values():
        agent.kill()
        agent.start()


def _killed(env: FaultEnvironment, effort: Effort, kill: Callable[[LoadedSystem], None]) -> Iterator[float]:
    with env.system() as system:
        system.recovered()
        for _ in range(effort.runs):
            time.sleep(env.chance.uniform(0.1, 1.0))  # a random moment to be killed at
            kill(system)
            yield system.recovered()


@fault("broker killed", quick=Effort(3), full=Effort(100))
def broker_killed(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Mosquitto is killed under load and started again."""
    yield from _killed(env, effort, _kill_broker)


@fault("service killed", quick=Effort(3), full=Effort(100))
def service_killed(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """The service is killed under load and started again."""
    yield from _killed(env, effort, _kill_service)


@fault("agent killed", quick=Effort(3), full=Effort(100))
def agent_killed(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """All agents are killed under load and started again."""
    yield from _killed(env, effort, _kill_agent)


@fault("all killed at random", quick=Effort(1, seconds=30), full=Effort(3, seconds=1800))
def all_killed(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Broker, service and agents are killed in any order, at any moment."""
    for _ in range(effort.runs):
        with env.system() as system:
            end = time.monotonic() + effort.seconds
            while time.monotonic() < end:
                time.sleep(env.chance.uniform(0.2, 2.5))
                env.chance.choice([_kill_broker, _kill_service, _kill_agent])(system)
            yield system.recovered()
