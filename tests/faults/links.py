"""Bad links between agents and broker, and between broker and service."""

import time
from collections.abc import Iterator

from tests.faults.environment import Scene, Stage
from tests.faults.registry import Effort, fault


def _cut(stage: Stage, scene: Scene) -> None:
    assert scene.proxy
    scene.proxy.cut()
    time.sleep(stage.chance.uniform(0.1, 3.0))
    scene.proxy.heal()


def _half_open(_stage: Stage, scene: Scene) -> None:
    assert scene.proxy
    scene.proxy.half_open()


def _slow(stage: Stage, scene: Scene) -> None:
    assert scene.proxy
    scene.proxy.delay = stage.chance.uniform(0.05, 0.5)
    time.sleep(stage.chance.uniform(0.5, 2.0))
    scene.proxy.heal()


def _narrow(stage: Stage, scene: Scene) -> None:
    assert scene.proxy
    scene.proxy.bytes_per_second = stage.chance.uniform(5_000, 50_000)
    time.sleep(stage.chance.uniform(0.5, 2.0))
    scene.proxy.heal()


_WAYS = (_cut, _slow, _cut, _narrow, _half_open)


@fault("link cut, half-open or slow", quick=Effort(10), full=Effort(200))
def bad_links(stage: Stage, effort: Effort) -> Iterator[float]:
    """Half of the times it is the agents' link, half of the times the service's."""
    for side, runs in (("agents", effort.runs - effort.runs // 2), ("service", effort.runs // 2)):
        with stage.scene(proxied=side) as scene:
            scene.recovered()
            for run in range(runs):
                _WAYS[run % len(_WAYS)](stage, scene)
                yield scene.recovered()
