"""Learning cut off, and enrolments that all come at once."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil

from tests.conftest import wait_until
from tests.faults.environment import FaultEnvironment, guarded, insist
from tests.faults.registry import Effort, fault
from tests.support.learning_helpers import (
    LEARNING,
    MACHINES,
    all_old_or_all_new,
    apprentices,
    ended,
    enrol,
    load_catalogue,
    write_history,
)
from tests.support.secured_broker import trying
from tests.system.conftest import Plant
from wire.enums import JobState


@fault("training killed", quick=Effort(8), full=Effort(100))
def training_killed(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """The process that trains, or the whole service, is killed at any moment of a learning."""
    with env.system(machines=0, settings=LEARNING) as system:
        plant, history = system.plant, system.plant.folder / "history.csv"
        load_catalogue(plant)
        write_history(history)
        first = ended(plant, enrol(plant, MACHINES[0], history))
        insist(first.state == "promoted", f"a machine is learned: {first}")
        enrol(plant, MACHINES[1], history)
        for _ in range(effort.runs):
            plant.api.enrolment.refresh(MACHINES[0])
            time.sleep(env.chance.uniform(0.0, 4.0))  # a random moment to be killed at
            started = time.monotonic()
            _kill(env, plant)
            insist(plant.api.forecasts.get(MACHINES[0]).learned, "the old model serves on")
            yield time.monotonic() - started
        wait_until(lambda: not _open_jobs(plant), "all jobs have ended", 180)
        all_old_or_all_new(plant)
        last = ended(plant, plant.api.enrolment.refresh(MACHINES[0]).id)
        insist(last.state in ("promoted", "rejected"), f"left alone, it learns: {last}")
        all_old_or_all_new(plant)


def _kill(env: FaultEnvironment, plant: Plant) -> None:
    children = apprentices(plant)
    if children and env.chance.random() < 0.3:
        with suppress(psutil.NoSuchProcess):
            children[0].kill()
        insist(plant.is_alive(), "the service outlives the process that trains")
        return
    plant.service.kill()
    all_old_or_all_new(plant)
    insist(psutil.wait_procs(children, timeout=20)[1] == [], "nobody trains for a service that is dead")
    plant.start_service()


def _open_jobs(plant: Plant) -> list[str]:
    jobs = plant.api.jobs.list().jobs
    given_up = [job for job in jobs if job.state is JobState.FAILED and "cut off" not in str(job.message)]
    insist(not given_up, f"no job fails for another reason than being cut off: {given_up}")
    return [job.state for job in jobs if job.state in (JobState.QUEUED, JobState.RUNNING)]


@fault("enrolled ten times at once", quick=Effort(1), full=Effort(10))
def enrolled_at_once(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Ten clients enrol the same machine at the same moment, in front of a guarded broker."""
    with env.system(machines=0, guarded=True) as system:
        plant = system.plant
        for run in range(effort.runs):
            started, name = time.monotonic(), f"new-{run}"
            with ThreadPoolExecutor(10) as pool:
                answers = list(pool.map(plant.api.enrolment.enrol, [f"plant/{name}"] * 10))
            insist(len({answer.job.id for answer in answers}) == 1, "everybody is answered, and there is one job")
            machines = [one.machine for one in plant.api.machines.list().machines]
            insist(machines.count(name) == 1, "there is one machine")
            issued = [answer.credentials for answer in answers if answer.credentials]
            insist(len(issued) == 1, "one of them is shown a password")
            holders = [holder for holder in guarded(system).holders() if holder.endswith(f"/{name}")]
            insist(holders == [issued[0].username], "the broker has one credential")
            with trying(guarded(system), issued[0].username, issued[0].password) as agent:
                insist(agent.is_in, "and it is the one that was shown")
            yield time.monotonic() - started
