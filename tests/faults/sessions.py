"""A session that is lost while messages wait unacked: their ids now belong to other messages."""

import time
from collections.abc import Iterator

from tests.faults.databases import held
from tests.faults.environment import Stage, insist
from tests.faults.registry import Effort, fault


@fault("session lost, stale message ids", quick=Effort(1), full=Effort(10))
def session_lost(stage: Stage, effort: Effort) -> Iterator[float]:
    """The broker forgets a service that holds uncommitted messages; no id is acked on the wrong connection."""
    with stage.scene(proxied="service") as scene:
        assert scene.proxy
        scene.recovered()
        for _ in range(effort.runs):
            with held(scene.plant.data / "alarmcast.sqlite3"):
                time.sleep(1.0)  # messages gather at the service, delivered and not committed
                scene.plant.broker.kill()
                (scene.plant.broker.folder / "mosquitto.db").unlink(missing_ok=True)
                scene.plant.broker.start()
                time.sleep(2.0)  # the same ids are given to other messages
            yield scene.recovered()
        insist(scene.proxy.foreign_acks == 0, "no message is acked over a connection that did not bring it")
