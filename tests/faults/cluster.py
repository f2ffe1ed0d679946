"""Several processes on one PostgreSQL database, of which any may be killed, or stop for a while, under load."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conftest import wait_until
from tests.faults.environment import FaultEnvironment, LoadedSystem, insist
from tests.faults.registry import Effort, fault
from tests.support.cluster import USUAL, ClusterPlant, Member
from tests.support.learning_helpers import LEARNING, MACHINES, ended, enrol, load_catalogue, running, write_history
from wire.enums import ProcessRole

_LEASE = 30.0  # seconds for which a worker holds a job without a sign of life


def _plant(system: LoadedSystem) -> ClusterPlant:
    assert isinstance(system.plant, ClusterPlant)
    return system.plant


@fault("one of several processes killed", quick=Effort(7), full=Effort(100))
def one_of_several_killed(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Three ingesters, two API processes and two workers: any of them is killed under load and started again."""
    with env.system(shared_out=USUAL) as system:
        plant = _plant(system)
        system.recovered()
        names = list(plant.members)
        for run in range(effort.runs):
            # Every one of them once, then any: a quick run must have met them all.
            name = names[run] if run < len(names) else env.chance.choice(names)
            time.sleep(env.chance.uniform(0.1, 1.0))
            member = plant.members[name]
            member.process.kill()
            took = system.recovered()
            member.process.start()
            wait_until(member.is_ready, f"{name} is ready again", 60)
            yield took


@fault("two workers, one stops for longer than its lease", quick=Effort(1), full=Effort(20))
def worker_stopped(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """A worker is stopped (SIGSTOP) while it learns, loses its job to the other, and wakes up again."""
    several = {ProcessRole.INGEST: 1, ProcessRole.API: 1, ProcessRole.WORKER: 2}
    with env.system(machines=1, shared_out=several, settings=LEARNING) as system:
        plant, history = _plant(system), system.plant.folder / "history.csv"
        load_catalogue(plant)
        write_history(history)
        first = ended(plant, enrol(plant, MACHINES[0], history))
        insist(first.state == "promoted", f"a machine is learned: {first}")
        for _ in range(effort.runs):
            before = len(plant.promotions())
            job = plant.api.enrolment.refresh(MACHINES[0]).id
            running(plant, job)
            with _stopped(_owner(plant, job)):
                took = _taken_over(plant, job)
                last = ended(plant, job)
            insist(last.state in ("promoted", "rejected"), f"the other brings it to its end: {last}")
            promoted = 1 if last.state == "promoted" else 0
            time.sleep(2)  # for the one that woke up to try what it must not
            insist(len(plant.promotions()) == before + promoted, "there is one promotion at most")
            insist(plant.api.jobs.get(job) == last, "who woke up changes nothing")
            yield took


def _taken_over(plant: ClusterPlant, job: int) -> float:
    started = time.monotonic()
    wait_until(lambda: plant.api.jobs.get(job).attempt > 1, "the other takes it up", 3 * _LEASE)
    return time.monotonic() - started


def _owner(plant: ClusterPlant, job: int) -> Member:
    """Return the worker that works at a job."""
    owner = plant.owner(job)
    for one in plant.of(ProcessRole.WORKER):
        if one.process.running and f":{one.process.running.pid}:" in owner:
            return one
    raise AssertionError(f"nobody of ours is {owner!r}")


@contextmanager
def _stopped(member: Member) -> Iterator[None]:
    assert member.process.running
    os.kill(member.process.running.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(member.process.running.pid, signal.SIGCONT)
