"""Load for long: nothing grows, nothing is lost."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from tests.conftest import free_port, wait_until
from tests.faults.environment import FaultEnvironment, LoadedSystem, insist
from tests.faults.registry import Effort, fault
from wire.timestamps import to_us

_BACKLOG, _DRAIN_RATE = 100_000, 2_000
_LATEST = timedelta(seconds=10)  # that a live event may be late while another machine's backlog drains
_MOST_GROWTH = 0.05
_WARM_UP = 0.25  # of the time; caches fill, the interpreter's memory settles


@fault("backlog beside live events", quick=Effort(1), full=Effort(5))
def backlog(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """A machine comes back with 100,000 events while others speak: it drains fast, and they are heard at once."""
    for _ in range(effort.runs):
        with env.system(rate=20) as system:
            yield _drained_beside_others(system)


def _drained_beside_others(system: LoadedSystem) -> float:
    system.recovered()
    plant, (machine, *others) = system.plant, system.agents
    system.agents[machine].stop()
    system.load.raise_alarms(machine, _BACKLOG)
    # Whatever it says, nobody hears it; so all of the backlog is in the spool before any of it is sent.
    alone = plant.agent(machine, system.load.logs[machine], broker_port=free_port())
    alone.start()
    wait_until(lambda: plant.given(machine) >= system.load.written[machine], "all is spooled", 120)
    alone.kill()
    waiting, began = plant.spooled(machine), datetime.now(UTC)
    system.agents[machine].start()
    started = time.monotonic()
    wait_until(lambda: plant.spooled(machine) == 0, "the backlog drains", 120)
    took = time.monotonic() - started
    rate = waiting / took
    insist(rate >= _DRAIN_RATE, f"a backlog drains at {_DRAIN_RATE} events/s; {waiting} took {took:.1f} s")
    latest = max(_latest(plant.data / "alarmcast.sqlite3", other, began) for other in others)
    insist(
        latest < _LATEST, f"live events of others are heard at once; one came {latest.total_seconds():.1f} s late"
    )
    return took


def _latest(database: Path, machine: str, since: datetime) -> timedelta:
    """Return how late the latest of a machine's events was, of those that were received since a moment."""
    query = (
        "SELECT max(received_us - at_us), count(*) FROM events JOIN machines ON machines.id = machine_id"
        " WHERE site || '/' || machine = ? AND received_us >= ?"
    )
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        latest, events = opened.execute(query, (machine, to_us(since))).fetchone()
    insist(events, "others speak while a backlog drains")
    return timedelta(microseconds=latest)


@fault("soak", quick=None, full=Effort(1, seconds=1200))
def soak(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Fifty agents for twenty minutes: the service's memory stays flat."""
    with env.system(machines=50, rate=4) as system:
        assert system.plant.service.running
        service = psutil.Process(system.plant.service.running.pid)
        system.recovered()
        time.sleep(effort.seconds * _WARM_UP)
        before = service.memory_info().rss
        time.sleep(effort.seconds * (1 - _WARM_UP))
        growth = service.memory_info().rss / before - 1
        yield system.recovered()
        insist(growth < _MOST_GROWTH, f"memory stays flat; it grew by {growth:.1%}")
