"""Enrolment between real processes: learned on top of each other, never half-done, whatever is killed or full."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import httpx
import psutil
import pytest

from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from service.store.engine import Database
from service.store.exams import ExamStore
from service.store.memories import MemoryStore
from service.store.versions import VersionStore
from service.store.weights import WeightsFolder
from tests.conftest import wait_until
from tests.system.conftest import Plant
from wire.identity import MachineId

MACHINES = [f"padova/filler-{index}" for index in range(3)]
KILLS = 20
LEARNING = {"ALARMCAST_MIN_TRAINING_WINDOWS": "100", "ALARMCAST_MEMORY_WINDOWS": "300"}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    log = tmp_path / "history.csv"
    write_log(log, machines=len(MACHINES), days=25, end=datetime.now(UTC), seed=19)
    return log


@pytest.fixture
def school(plant: Plant) -> Plant:
    """A running service for which a few weeks are enough to learn from."""
    plant.service.environment = LEARNING
    plant.start_service()
    headers = {"Content-Type": "text/csv"}
    assert plant.post("/v1/catalogue", content=catalogue_csv().encode(), headers=headers).is_success
    return plant


def enrol(plant: Plant, machine: str, history: Path | None = None) -> int:
    """Enrol a machine, with its past if there is one, and return its job."""
    site, name = machine.split("/")
    answer = plant.post("/v1/machines", json={"site": site, "machine": name, "name": name})
    assert answer.status_code == 202, answer.text
    if history is not None:
        loaded = plant.post(
            f"/v1/machines/{machine}/history", content=history.read_bytes(), params={"serial": name.split("-")[1]}
        )
        assert loaded.is_success, loaded.text
    return int(answer.json()["job"]["id"])


def job(plant: Plant, number: int) -> dict[str, object]:
    return dict(plant.get(f"/v1/jobs/{number}").json())


def ended(plant: Plant, number: int) -> dict[str, object]:
    wait_until(lambda: job(plant, number)["state"] not in ("collecting", "queued", "running"), "the job ends", 120)
    return job(plant, number)


def running(plant: Plant, number: int) -> None:
    wait_until(lambda: job(plant, number)["state"] == "running", "the job runs", 60)


def apprentices(plant: Plant) -> list[psutil.Process]:
    """Return the processes that train for this service, alive as they may be."""
    assert plant.service.running
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(plant.service.running.pid).children()
    return []


@pytest.mark.timeout(300)
def test_machines_enrolled_at_once_are_learned_one_on_top_of_the_other(school: Plant, history: Path) -> None:
    numbers = [enrol(school, machine, history) for machine in MACHINES]
    with httpx.stream("GET", f"{school.address}/v1/jobs/{numbers[0]}/events", timeout=60) as stream:
        told = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: ")]
    stages = [json.loads(one)["progress"]["stage"] for one in told]
    assert stages[-1] == "done"
    assert "training" in stages or "dataset" in stages
    outcomes = [ended(school, number) for number in numbers]
    assert [one["state"] for one in outcomes[:1]] == ["promoted"], outcomes
    models = school.get("/v1/models").json()["models"]
    promoted = [one for one in reversed(models) if one["standing"] != "rejected"]
    for older, newer in pairwise(promoted):
        assert newer["parent"] == older["version"]
        assert newer["machines"][:-1] == older["machines"]
    detail = school.get(f"/v1/models/{promoted[-1]['version']}").json()
    assert set(detail["exams"]) == set(detail["machines"])
    assert list(detail["matrix"]) == [one["version"] for one in promoted]
    assert detail["report"]["code_version"]
    forecast = school.get(f"/v1/machines/{MACHINES[0]}/forecast").json()
    assert (forecast["model_version"], forecast["learned"]) == (promoted[-1]["version"], True)


@pytest.mark.timeout(600)
def test_killed_at_any_point_the_old_model_serves_and_the_memory_is_all_old_or_all_new(
    school: Plant, history: Path
) -> None:
    chance = random.Random(os.environ.get("KILL_SEED", "23"))  # noqa: S311
    first = ended(school, enrol(school, MACHINES[0], history))
    assert first["state"] == "promoted", first
    enrol(school, MACHINES[1], history)
    for _ in range(KILLS):
        learned = school.post(f"/v1/machines/{MACHINES[0]}/refresh")
        assert learned.status_code == 202
        time.sleep(chance.uniform(0.0, 4.0))  # a random moment to be killed at, not a hope
        children = apprentices(school)
        if chance.random() < 0.3 and children:
            with suppress(psutil.NoSuchProcess):
                children[0].kill()
            assert school.is_alive(), "the service outlives the process that trains"
        else:
            school.service.kill()
            all_old_or_all_new(school)
            assert psutil.wait_procs(children, timeout=20)[1] == [], "nobody trains for a service that is dead"
            school.start_service()
        assert school.get(f"/v1/machines/{MACHINES[0]}/forecast").json()["learned"] is True
    wait_until(
        lambda: all(one["state"] not in ("queued", "running") for one in school.get("/v1/jobs").json()["jobs"]),
        "all jobs have ended",
        180,
    )
    all_old_or_all_new(school)
    for one in school.get("/v1/jobs").json()["jobs"]:
        given_up = one["state"] == "failed" and "cut off" in one["message"]
        assert one["state"] in ("promoted", "rejected") or given_up, one
    last = school.post(f"/v1/machines/{MACHINES[0]}/refresh").json()["id"]
    assert ended(school, last)["state"] in ("promoted", "rejected"), "left alone, it learns"
    all_old_or_all_new(school)


def all_old_or_all_new(plant: Plant) -> None:
    """Look at the store itself: every version is whole, and the champion's weights are what they claim to be."""
    database = Database(f"sqlite:///{plant.data / 'alarmcast.sqlite3'}", read_only=True)
    try:
        versions = VersionStore(database, WeightsFolder(plant.data / "weights"))
        champion = versions.champion()
        assert champion is not None
        for version in versions.all():
            versions.load(version)
            memory = MemoryStore(database).of(version.number)
            assert tuple(memory.tasks) == version.learned
            stored = {
                name: {"replayed": len(task.windows), "held_out": len(task.held_out)}
                for name, task in memory.tasks.items()
            }
            assert stored == version.report["memory"]["by_machine"]
            assert set(ExamStore(database).by_code(version.number)) >= set(version.learned)
        for machine in champion.learned:
            answers = ExamStore(database).answers(MachineId.parse(machine))
            exam = ExamStore(database).of(MachineId.parse(machine))
            assert exam is not None
            assert len(answers[champion.number].probabilities) == len(exam.windows)
    finally:
        database.close()


@pytest.mark.timeout(300)
def test_a_full_disk_fails_the_job_in_a_sentence_and_the_next_try_succeeds(school: Plant, history: Path) -> None:
    with full(school.data / "weights"):
        failed = ended(school, enrol(school, MACHINES[0], history))
        assert failed["state"] == "failed"
        assert "No space left on device" in str(failed["message"])
        machine = school.get(f"/v1/machines/{MACHINES[0]}").json()
        assert (machine["state"], machine["reason"]) == ("failed", failed["message"])
    again = ended(school, enrol(school, MACHINES[0]))
    assert again["state"] == "promoted", again


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
    assert ended(school, number)["state"] == "promoted"
    assert job(school, number)["attempt"] == 1, "what was learned meanwhile was not thrown away"


@pytest.mark.timeout(300)
def test_damaged_weights_fail_the_next_job_in_a_sentence_until_somebody_goes_back(
    school: Plant, history: Path
) -> None:
    assert ended(school, enrol(school, MACHINES[0], history))["state"] == "promoted"
    (weights,) = (school.data / "weights").glob("*.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-10])
    second = ended(school, enrol(school, MACHINES[1], history))
    assert second["state"] == "failed"
    assert "damaged" in str(second["message"])
    assert school.get(f"/v1/machines/{MACHINES[0]}/forecast").is_success, "what is in memory serves on"
    weights.write_bytes(whole)
    assert ended(school, enrol(school, MACHINES[1]))["state"] in ("promoted", "rejected")


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
    assert ended(school, number)["state"] == "promoted"
    assert job(school, number)["attempt"] == 2
