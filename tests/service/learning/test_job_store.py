"""Jobs, on SQLite and on PostgreSQL alike: taken up by one worker at a time, and fenced."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from service.database.copy_endpoint import open_endpoint
from service.database.engine import Database
from service.errors import LeaseLost, NotFound
from service.http.message import Message
from service.learning.enrolment_store import EnrolmentStore
from service.learning.job_store import JobStore, cancel_jobs, check_lease
from service.learning.models import Job, Progress
from service.machines.store import MachineStore
from tests.service.conftest import enrolled, lapse
from wire.enums import JobKind, JobState, MachineState
from wire.identity import MachineId

AT = datetime(2026, 11, 16, tzinfo=UTC)
LEASE = timedelta(seconds=30)
FIRST, SECOND = MachineId("padova", "filler-1"), MachineId("padova", "filler-2")


@pytest.fixture
def board(database: Database) -> JobStore:
    """Two enrolments that wait to be learned."""
    for machine in (FIRST, SECOND):
        enrolled(EnrolmentStore(database), machine)
    store = JobStore(database)
    for job in store.collecting():
        store.queue(job)
    return store


def claimed(board: JobStore, owner: str = "a") -> Job:
    job = board.claim(owner, now=AT, lease=LEASE)
    assert job is not None
    return job


def test_machines_learn_in_turn_oldest_wish_first(board: JobStore, database: Database) -> None:
    first = claimed(board)
    assert (first.machine, first.attempt, first.state) == (FIRST, 1, JobState.RUNNING)
    assert MachineStore(database).get(FIRST).state is MachineState.LEARNING
    assert board.claim("b", now=AT, lease=LEASE) is None, "one learns on top of the other, never beside it"
    board.fail(first, Message.of("Broken."), now=AT, plant_now=AT)
    assert claimed(board).machine == SECOND


def test_the_end_of_a_job_is_kept_in_wall_time_and_in_plant_time(board: JobStore, database: Database) -> None:
    plant = AT + timedelta(hours=9)
    failed = claimed(board)
    board.fail(failed, Message.of("Broken."), now=AT, plant_now=plant)
    cancelled = board.newest(machine=SECOND)[0]
    with database.write() as connection:
        row = MachineStore(database).get(SECOND).row_id
        cancel_jobs(connection, row, at=AT, plant_at=plant, why=Message.of("Retired."))
    for number in (failed.id, cancelled.id):
        job = board.get(number)
        assert (job.finished_at, job.finished_plant_at) == (AT, plant)


def test_ten_workers_get_one_job(board: JobStore) -> None:
    with ThreadPoolExecutor(10) as pool:
        got = list(pool.map(lambda name: board.claim(str(name), now=AT, lease=LEASE), range(10)))
    assert sum(job is not None for job in got) == 1


def test_workers_of_two_processes_that_choose_at_once_get_one_job(board: JobStore, database: Database) -> None:
    other = Database(database.url)
    boards = [board, JobStore(other)] * 3
    for turn in range(10):
        lapse(database, LEASE)
        with ThreadPoolExecutor(6) as pool:
            got = list(pool.map(lambda one: one.claim("w", now=AT, lease=LEASE), boards))
        taken = [job for job in got if job is not None]
        assert [(job.machine, job.attempt) for job in taken] == [(FIRST, turn + 1)]
    other.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_nobody_waits_for_a_worker_that_is_just_heard_of(board: JobStore, database: Database) -> None:
    job = claimed(board)
    lapse(database, LEASE)
    with database.write() as connection:
        check_lease(connection, job)
        assert board.claim("b", now=AT, lease=LEASE) is None, "nor is another machine learned beside it"
    assert claimed(board, "b").id == job.id


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.usefixtures("board")
def test_a_copy_of_the_database_keeps_nobody_from_choosing_a_job(database: Database) -> None:
    database.close()  # a copy begins only where nobody else is
    with open_endpoint(database.url) as side, side.held():
        other = Database(database.url)
        assert JobStore(other).claim("a", now=AT, lease=LEASE) is not None
        other.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_job_that_somebody_writes_to_is_passed_over(board: JobStore, database: Database) -> None:
    oldest = board.newest(machine=FIRST)[0]
    with database.write() as connection:
        cancel_jobs(
            connection, MachineStore(database).get(FIRST).row_id, at=AT, plant_at=AT, why=Message.of("Retired.")
        )
        assert claimed(board).machine == SECOND
    assert board.get(oldest.id).state is JobState.CANCELLED


def test_a_worker_that_is_not_heard_of_loses_its_job_and_can_write_nothing_more(
    board: JobStore, database: Database
) -> None:
    lost = claimed(board, "a")
    lapse(database, LEASE / 3)
    assert board.claim("b", now=AT, lease=LEASE) is None
    lapse(database, LEASE)
    taken = claimed(board, "b")
    assert (taken.id, taken.attempt) == (lost.id, 2)
    with pytest.raises(LeaseLost):
        board.renew(lost, Progress("training"), lease=LEASE)
    with pytest.raises(LeaseLost):
        board.release(lost, why=Message.of("stop"))
    with pytest.raises(LeaseLost):
        board.fail(lost, Message.of("late"), now=AT, plant_now=AT)
    assert board.get(lost.id).owner == "b"


def test_a_worker_that_is_heard_of_keeps_its_job_and_tells_how_far_it_is(
    board: JobStore, database: Database
) -> None:
    job = claimed(board, "a")
    progress = Progress("training", done=2, total=3, loss=0.25, seconds_left=1.5)
    lapse(database, LEASE)
    board.renew(job, progress, lease=LEASE)
    assert board.claim("b", now=AT, lease=LEASE) is None
    assert board.get(job.id).progress == progress


@pytest.mark.parametrize("wrong", [-400 * LEASE, 400 * LEASE])
def test_a_worker_whose_clock_is_wrong_neither_takes_a_job_from_another_nor_loses_its_own(
    board: JobStore, wrong: timedelta
) -> None:
    assert board.claim("a", now=AT, lease=LEASE)
    assert board.claim("b", now=AT + wrong, lease=LEASE) is None
    board.release(board.newest(machine=FIRST)[0], why=Message.of("The service stopped."))
    assert board.claim("b", now=AT + wrong, lease=LEASE)
    assert board.claim("a", now=AT, lease=LEASE) is None


def test_a_job_given_back_is_taken_up_at_once(board: JobStore) -> None:
    job = claimed(board, "a")
    board.release(job, why=Message.of("The service stopped."))
    again = claimed(board, "b")
    assert (again.id, again.attempt) == (job.id, 2)


def test_after_a_restart_nobody_waits_for_the_dead(board: JobStore) -> None:
    job = claimed(board, "a")
    assert board.recover() == 1
    assert claimed(board, "b").id == job.id


def test_a_machine_has_one_open_job(board: JobStore, database: Database) -> None:
    machine = MachineStore(database).get(FIRST)
    open_job = board.newest(machine=FIRST)[0]
    assert board.open(machine, JobKind.REFRESH, JobState.QUEUED, at=AT).id == open_job.id
    board.fail(claimed(board), Message.of("Broken."), now=AT, plant_now=AT)
    assert board.open(machine, JobKind.REFRESH, JobState.QUEUED, at=AT).id != open_job.id


def test_a_refresh_that_fails_leaves_its_machine_as_it_was(board: JobStore, database: Database) -> None:
    board.fail(claimed(board), Message.of("Broken."), now=AT, plant_now=AT)
    board.fail(claimed(board), Message.of("Broken."), now=AT, plant_now=AT)
    machine = MachineStore(database).get(FIRST)
    board.open(machine, JobKind.REFRESH, JobState.QUEUED, at=AT)
    board.fail(claimed(board), Message.of("Broken again."), now=AT, plant_now=AT)
    assert MachineStore(database).get(FIRST).state is MachineState.LIVE
    assert MachineStore(database).get(FIRST).reason == Message.of("Broken again.")


def test_a_retired_machines_job_is_lost_to_its_worker(board: JobStore, database: Database) -> None:
    job = claimed(board)
    machine = MachineStore(database).get(FIRST)
    EnrolmentStore(database).retire(machine, who="me", at=AT, plant_at=AT, reason=None)
    with pytest.raises(LeaseLost):
        board.renew(job, Progress("training"), lease=LEASE)
    assert MachineStore(database).get(FIRST).state is MachineState.RETIRED


def test_what_a_collecting_job_waits_for_is_told(database: Database) -> None:
    enrolled(EnrolmentStore(database), FIRST)
    board = JobStore(database)
    (job,) = board.collecting()
    board.set_message(job, Message.of("3 of 336 windows."), MachineState.COLLECTING)
    assert board.get(job.id).message == Message.of("3 of 336 windows.")
    assert MachineStore(database).get(FIRST).state is MachineState.COLLECTING


def test_there_is_no_job_that_was_never_made(database: Database) -> None:
    with pytest.raises(NotFound, match="no job 7"):
        JobStore(database).get(7)
