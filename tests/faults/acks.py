"""Acks that never arrive: the only harm is that events are sent again."""

import time
from collections.abc import Iterator

from tests.faults.environment import FaultEnvironment, insist
from tests.faults.registry import Effort, fault


@fault("half of the acks lost", quick=Effort(1, seconds=10), full=Effort(3, seconds=120))
def acks_lost(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Every second ack vanishes between broker and agent, until all the same every spool is empty."""
    for _ in range(effort.runs):
        with env.system(proxied="agents", rate=50) as system:
            assert system.proxy
            system.recovered()
            system.proxy.lose_acks = 0.5
            system.patience = 900  # seconds; every second attempt fails, and each waits longer than the one before
            time.sleep(effort.seconds)
            started = time.monotonic()
            system.drain()
            yield time.monotonic() - started
            insist(system.proxy.lost_acks, "some acks are lost, or nothing is tested")
            insist(system.is_drained(), "every spool empties though half of the acks are lost")
            duplicates = system.plant.api.health.status().counts["duplicate"]
            insist(duplicates, "what was not acked is sent again")
