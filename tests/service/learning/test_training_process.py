"""The next process that trains: ready while another job is likely, gone when nobody came, never two."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.learning.training_process import TrainingProcess, WarmProcessPool

WAITS = "import sys; sys.stdin.readline()"
Make = Callable[..., WarmProcessPool]


@pytest.fixture
def started() -> list[TrainingProcess]:
    return []


@pytest.fixture
def make(started: list[TrainingProcess], tmp_path: Path) -> Iterator[Make]:
    def pool(program: str = WAITS, patience: float = 60.0) -> WarmProcessPool:
        def start() -> TrainingProcess:
            started.append(TrainingProcess([sys.executable, "-c", program], tmp_path))
            return started[-1]

        return WarmProcessPool(start, idle_timeout_s=patience)

    yield pool
    for one in started:
        one.stop()


def test_nobody_waits_before_there_was_a_job(make: Make, started: list[TrainingProcess]) -> None:
    make().tick()
    assert started == []


def test_one_waits_after_a_job_and_is_the_one_taken(make: Make, started: list[TrainingProcess]) -> None:
    pool = make()
    pool.keep_warm()
    for _ in range(3):
        pool.tick()
    (waiting,) = started
    assert waiting.is_alive
    assert pool.acquire() is waiting
    assert pool.acquire() is not waiting, "it is taken once"


@pytest.mark.parametrize("looks", [0, 2])
def test_one_that_died_while_it_waited_is_not_taken_and_not_replaced(
    make: Make, started: list[TrainingProcess], looks: int
) -> None:
    pool = make("pass")
    pool.keep_warm()
    pool.tick()
    (dead,) = started
    assert dead.process
    dead.process.wait()
    for _ in range(looks):
        pool.tick()
    assert started == [dead], "what dies while it waits would die again and again"
    assert pool.acquire() is not dead


def test_it_goes_when_nobody_comes(make: Make, started: list[TrainingProcess]) -> None:
    pool = make(patience=0.05)
    pool.keep_warm()
    pool.tick()
    time.sleep(0.06)
    pool.tick()
    assert not any(one.is_alive for one in started)


def test_it_ends_by_itself_when_the_service_does(make: Make, started: list[TrainingProcess]) -> None:
    pool = make()
    pool.keep_warm()
    pool.tick()
    process = started[0].process
    assert process
    assert process.stdin
    process.stdin.close()
    assert process.wait(timeout=20) == 0
