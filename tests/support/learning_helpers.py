"""What tests and faults of learning share: enrol, wait, and look whether the store is whole."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from service.database.engine import Database
from service.database.weight_files import WeightsFolder
from service.forecasts.version_store import VersionStore
from service.learning.evaluation_store import HoldoutStore
from service.learning.memory_store import MemoryStore
from tests.conftest import wait_until
from tests.system.conftest import Plant
from wire.enums import JobState
from wire.identity import MachineId
from wire.rest.jobs import JobView

MACHINES = [f"padova/filler-{index}" for index in range(3)]
OPEN = (JobState.COLLECTING, JobState.QUEUED, JobState.RUNNING)
# A few weeks are enough to learn from.
LEARNING = {"ALARMCAST_MIN_TRAINING_WINDOWS": "100", "ALARMCAST_MEMORY_WINDOWS": "300"}


def write_history(log: Path) -> None:
    """Write a few weeks of every machine's past."""
    write_log(log, machines=len(MACHINES), days=25, end=datetime.now(UTC), seed=19)


def load_catalogue(plant: Plant) -> None:
    plant.api.catalogue.add(catalogue_csv())


def enrol(plant: Plant, machine: str, history: Path | None = None) -> int:
    """Enrol a machine, with its past if there is one, and return its job."""
    job = plant.api.enrolment.enrol(machine, name=MachineId.parse(machine).machine).job
    assert job.state in OPEN, job
    if history is not None:
        plant.api.enrolment.load_history(machine, history, serial=machine.rpartition("-")[2])
    return job.id


def ended(plant: Plant, number: int) -> JobView:
    wait_until(lambda: plant.api.jobs.get(number).state not in OPEN, "the job ends", 120)
    return plant.api.jobs.get(number)


def running(plant: Plant, number: int) -> None:
    wait_until(lambda: plant.api.jobs.get(number).state is JobState.RUNNING, "the job runs", 60)


def apprentices(plant: Plant) -> list[psutil.Process]:
    """Return the processes that train for this service, alive as they may be."""
    assert plant.service.running
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(plant.service.running.pid).children()
    return []


def all_old_or_all_new(plant: Plant) -> None:
    """Look at the store itself: every version is whole, and the champion's weights are what they claim to be."""
    database = Database(f"sqlite:///{plant.data / 'alarmcast.sqlite3'}", read_only=True)
    try:
        versions = VersionStore(database, WeightsFolder(plant.data / "weights"))
        champion = versions.champion()
        assert champion is not None
        for version in versions.all():
            if version.pruned:
                continue
            versions.load(version)
            memory = MemoryStore(database).get(version.id)
            assert tuple(memory.tasks) == version.learned
            stored = {
                name: {"replayed": len(task.windows), "held_out": len(task.held_out)}
                for name, task in memory.tasks.items()
            }
            assert stored == version.report["memory"]["by_machine"]
            assert set(HoldoutStore(database).by_code(version.id)) >= set(version.learned)
        for machine in champion.learned:
            answers = HoldoutStore(database).results_by_version(MachineId.parse(machine))
            exam = HoldoutStore(database).get(MachineId.parse(machine))
            assert exam is not None
            assert len(answers[champion.id].probabilities) == len(exam.windows)
    finally:
        database.close()
