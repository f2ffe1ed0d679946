"""The worker: whatever becomes of the process that trains, the job ends in a defined way."""

from datetime import UTC, datetime, timedelta

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.http.message import WITHHELD, Message
from service.learning.models import Job
from service.learning.thread import MAX_INTERRUPTIONS
from tests.service.conftest import FILLER
from tests.support.training_worker import Make, says
from wire.enums import JobState, MachineState


def the_job(stores: Stores) -> Job:
    return stores.jobs.newest()[0]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (says(stage="dataset") + says(failed="There is nothing to learn."), "There is nothing to learn."),
        (
            "raise SystemExit('torch is not installed')",
            "ended with code 1. Its last words: torch is not installed",
        ),
        ("pass", "ended with code 0. Its last words: it said nothing"),
        (says(done=True), "cannot be read"),
    ],
)
def test_a_process_that_brings_nothing_fails_its_job_in_a_sentence(
    worker: Make, stores: Stores, program: str, message: str
) -> None:
    assert worker(program).work()
    job = the_job(stores)
    assert job.state is JobState.FAILED
    assert message in str(job.message)
    machine = stores.machines.get(FILLER)
    assert (machine.state, machine.reason) == (MachineState.FAILED, job.message)
    assert not worker(program).work(), "there is no more to do"


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit('KeyError: 4711/17')",
        says(failed="The training process could not go on.", detail="The exam of 4711/17 cannot be read."),
    ],
)
def test_what_a_process_leaves_unjudged_is_for_people_of_all_sites(
    worker: Make, stores: Stores, program: str
) -> None:
    assert worker(program).work()
    message = the_job(stores).message
    assert message
    assert "4711/17" in str(message.shown_to(None))
    own = str(message.shown_to(frozenset({FILLER.site})))
    assert own.startswith("The training process ")
    assert own.endswith(WITHHELD)
    assert "4711" not in own


def test_a_process_that_is_killed_is_tried_again_but_not_for_ever(worker: Make, stores: Stores) -> None:
    suicide = worker("import os; os.kill(os.getpid(), 9)")
    for attempt in range(1, MAX_INTERRUPTIONS):
        assert suicide.work()
        job = the_job(stores)
        assert (job.state, job.attempt) == (JobState.QUEUED, attempt)
    assert suicide.work()
    assert the_job(stores).state is JobState.FAILED
    assert "is given up. The training process was killed (signal 9)." in str(the_job(stores).message)
    assert "enrol or refresh the machine once more" in str(the_job(stores).message)


def test_a_job_that_killed_every_worker_is_given_up(worker: Make, stores: Stores) -> None:
    working = worker("pass")
    for _ in range(MAX_INTERRUPTIONS):
        assert stores.jobs.claim("dead", now=datetime.now(UTC), lease=working.lease)
        stores.jobs.recover()
    assert working.work()
    assert the_job(stores).state is JobState.FAILED
    assert "was cut off 10 times" in str(the_job(stores).message)


def test_progress_is_stored_as_it_is_told(worker: Make, stores: Stores) -> None:
    program = says(stage="training", done=2, total=3, loss=0.5) + "import time; time.sleep(60)"
    working = worker(program)
    working.start()
    try:
        for _ in range(600):
            if the_job(stores).progress.stage == "training":
                break
            working._stopping.wait(0.05)  # noqa: SLF001
        progress = the_job(stores).progress
        assert (progress.done, progress.total, progress.loss) == (2, 3, 0.5)
    finally:
        working.stop()
    assert the_job(stores).state is JobState.QUEUED, "stopped, it gives its job back"


def test_a_retired_machines_job_is_dropped(worker: Make, service: Service, stores: Stores) -> None:
    service.learning.worker.queue_ready = lambda: service.learning.enrolment.retire(
        FILLER, who="test", reason=None
    )
    assert not worker("pass").work()
    assert the_job(stores).state is JobState.CANCELLED


def test_stopping_and_starting_costs_a_job_nothing(worker: Make, stores: Stores) -> None:
    assert worker("pass").lease
    for attempt in range(1, 3 * MAX_INTERRUPTIONS):
        claimed = stores.jobs.claim("me", now=datetime.now(UTC), lease=timedelta(minutes=1))
        assert claimed
        assert (claimed.attempt, claimed.interruptions) == (attempt, 0)
        stores.jobs.release(claimed, why=Message.of("The service stopped."))


def test_a_process_that_says_nothing_for_too_long_is_given_up(worker: Make, stores: Stores) -> None:
    silent = worker("import time; time.sleep(600)")
    silent.hung_after_s = 1.0
    assert silent.work()
    job = the_job(stores)
    assert (job.state, job.interruptions) == (JobState.QUEUED, 1)
    assert "has said nothing" in str(job.message)


def test_what_a_killed_learning_left_is_swept_away(worker: Make) -> None:
    working = worker("pass")
    left = working.folder / "job-7-abc"
    left.mkdir(parents=True)
    (left / "stderr.txt").touch()
    working.sweep()
    assert not left.exists()
