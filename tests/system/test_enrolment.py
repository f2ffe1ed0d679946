"""Enrolment between real processes: learned on top of each other, never half-done, whatever is killed or full."""

import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from alarmcast import Unavailable
from tests.conftest import wait_until
from tests.support.learning_helpers import (
    LEARNING,
    MACHINES,
    apprentices,
    ended,
    enrol,
    load_catalogue,
    running,
    write_history,
)
from tests.system.conftest import Plant
from wire.enums import VersionStatus


@pytest.fixture
def history(tmp_path: Path) -> Path:
    log = tmp_path / "history.csv"
    write_history(log)
    return log


@pytest.fixture
def school(plant: Plant) -> Plant:
    """A running service for which a few weeks are enough to learn from."""
    plant.service.environment = LEARNING
    plant.start_service()
    load_catalogue(plant)
    return plant


@pytest.mark.timeout(300)
def test_machines_enrolled_at_once_are_learned_one_on_top_of_the_other(school: Plant, history: Path) -> None:
    numbers = [enrol(school, machine, history) for machine in MACHINES]
    stages = [job.progress.stage for job in school.api.jobs.stream(numbers[0])]
    assert stages[-1] == "done"
    assert "training" in stages or "dataset" in stages
    outcomes = [ended(school, number) for number in numbers]
    assert [one.state for one in outcomes[:1]] == ["promoted"], outcomes
    promoted = [
        one for one in reversed(school.api.models.list().models) if one.status is not VersionStatus.REJECTED
    ]
    for older, newer in pairwise(promoted):
        assert newer.parent == older.version
        assert newer.machines[:-1] == older.machines
    detail = school.api.models.get(promoted[-1].version)
    assert set(detail.exams) == set(detail.machines)
    assert list(detail.matrix) == [one.version for one in promoted]
    assert detail.report["code_version"]
    newest = promoted[-1].version
    wait_until(lambda: school.api.forecasts.get(MACHINES[0]).model_version == newest, "the new version serves")
    assert school.api.forecasts.get(MACHINES[0]).learned


@pytest.mark.timeout(300)
def test_a_full_disk_fails_the_job_in_a_sentence_and_the_next_try_succeeds(school: Plant, history: Path) -> None:
    with full(school.data / "weights"):
        failed = ended(school, enrol(school, MACHINES[0], history))
        assert failed.state == "failed"
        assert "No space left on device" in str(failed.message)
        machine = school.api.machines.get(MACHINES[0])
        assert (machine.state, machine.reason) == ("failed", failed.message)
    again = ended(school, enrol(school, MACHINES[0]))
    assert again.state == "promoted", again


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Put a file system without room under a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = shutil.which("mount")
    assert program, "mount is missing"
    subprocess.run([program, "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.timeout(300)
def test_a_database_locked_for_half_a_minute_delays_the_job_and_nothing_else(school: Plant, history: Path) -> None:
    number = enrol(school, MACHINES[0], history)
    running(school, number)
    with closing(sqlite3.connect(school.data / "alarmcast.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(32)  # longer than a writer waits
        other.execute("ROLLBACK")
    job = ended(school, number)
    assert job.state == "promoted"
    assert job.attempt == 1, "what was learned meanwhile was not thrown away"


@pytest.mark.timeout(300)
def test_damaged_weights_fail_the_next_job_in_a_sentence_until_somebody_goes_back(
    school: Plant, history: Path
) -> None:
    assert ended(school, enrol(school, MACHINES[0], history)).state == "promoted"
    wait_until(lambda: serves(school), "the new version serves")
    (weights,) = (school.data / "weights").glob("*.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-10])
    second = ended(school, enrol(school, MACHINES[1], history))
    assert second.state == "failed"
    assert "damaged" in str(second.message)
    assert serves(school), "what is in memory serves on"
    weights.write_bytes(whole)
    assert ended(school, enrol(school, MACHINES[1])).state in ("promoted", "rejected")


def serves(school: Plant) -> bool:
    try:
        return bool(school.api.forecasts.get(MACHINES[0]).alarms)
    except Unavailable:
        return False


@pytest.mark.timeout(120)
def test_a_service_told_to_stop_gives_its_job_back_and_goes_on_with_it_later(school: Plant, history: Path) -> None:
    number = enrol(school, MACHINES[0], history)
    running(school, number)
    children = apprentices(school)
    assert school.service.running
    school.service.running.send_signal(signal.SIGTERM)
    assert school.service.running.wait(timeout=20) == 0, school.service.words()
    assert psutil.wait_procs(children, timeout=5)[1] == []
    school.start_service()
    job = ended(school, number)
    assert job.state == "promoted"
    assert job.attempt == 2
