"""Bad links between agents and broker, and between broker and service."""

import time
from collections.abc import Iterator

from tests.faults.environment import FaultEnvironment, LoadedSystem
from tests.faults.registry import Effort, fault


def _cut(env: FaultEnvironment, system: LoadedSystem) -> None:
    assert system.proxy
    system.proxy.cut()
    time.sleep(env.chance.uniform(0.1, 3.0))
    system.proxy.heal()


def _half_open(_env: FaultEnvironment, system: LoadedSystem) -> None:
    assert system.proxy
    system.proxy.half_open()


def _slow(env: FaultEnvironment, system: LoadedSystem) -> None:
    assert system.proxy
    system.proxy.delay = env.chance.uniform(0.05, 0.5)
    time.sleep(env.chance.uniform(0.5, 2.0))
    system.proxy.heal()


def _narrow(env: FaultEnvironment, system: LoadedSystem) -> None:
    assert system.proxy
    system.proxy.bytes_per_second = env.chance.uniform(5_000, 50_000)
    time.sleep(env.chance.uniform(0.5, 2.0))
    system.proxy.heal()


_WAYS = (_cut, _slow, _cut, _narrow, _half_open)


@fault("link cut, half-open or slow", quick=Effort(10), full=Effort(200))
def bad_links(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Half of the times it is the agents' link, half of the times the service's."""
    for side, runs in (("agents", effort.runs - effort.runs // 2), ("service", effort.runs // 2)):
        with env.system(proxied=side) as system:
            system.recovered()
            for run in range(runs):
                _WAYS[run % len(_WAYS)](env, system)
                yield system.recovered()
