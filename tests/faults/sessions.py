"""A session that is lost while messages wait unacked: their ids now belong to other messages."""

import time
from collections.abc import Iterator

from tests.faults.databases import held
from tests.faults.environment import FaultEnvironment, insist
from tests.faults.registry import Effort, fault


@fault("session lost, stale message ids", quick=Effort(1), full=Effort(10))
def session_lost(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """The broker forgets a service that holds uncommitted messages; no id is acked on the wrong connection."""
    with env.system(proxied="service") as system:
        assert system.proxy
        system.recovered()
        for _ in range(effort.runs):
            with held(system.plant.data / "alarmcast.sqlite3"):
                time.sleep(1.0)  # messages gather at the service, delivered and not committed
                system.plant.broker.kill()
                (system.plant.broker.folder / "mosquitto.db").unlink(missing_ok=True)
                system.plant.broker.start()
                time.sleep(2.0)  # the same ids are given to other messages
            yield system.recovered()
        insist(system.proxy.foreign_acks == 0, "no message is acked over a connection that did not bring it")
