"""Turns and processes: one holder at a time, taken over when its time is over, and everybody on the roll."""

import time
from datetime import timedelta
from threading import Barrier, Thread

import pytest

from service.core.process import Process, Report, Turn
from service.store.engine import Database
from service.store.processes import ProcessStore
from service.store.turns import TurnStore
from tests.service.conftest import NOW
from wire.words import ProcessRole

LONG, SHORT = timedelta(minutes=1), timedelta(milliseconds=50)


@pytest.fixture
def turns(database: Database) -> TurnStore:
    return TurnStore(database)


def test_a_turn_has_one_holder_who_keeps_it_for_as_long_as_it_is_renewed(turns: TurnStore) -> None:
    assert turns.hold([Turn.DUTIES], "a", LONG) == {Turn.DUTIES}
    assert turns.hold([Turn.DUTIES], "b", LONG) == set()
    assert turns.hold([Turn.DUTIES], "a", LONG) == {Turn.DUTIES}


def test_turns_are_held_one_by_one(turns: TurnStore) -> None:
    turns.hold([Turn.DUTIES], "a", LONG)
    assert turns.hold([Turn.DUTIES, Turn.STATES], "b", LONG) == {Turn.STATES}


def test_who_is_silent_for_too_long_loses_its_turn(turns: TurnStore) -> None:
    turns.hold([Turn.DUTIES], "a", SHORT)
    time.sleep(2 * SHORT.total_seconds())
    assert turns.hold([Turn.DUTIES], "b", LONG) == {Turn.DUTIES}
    assert turns.hold([Turn.DUTIES], "a", LONG) == set()


def test_who_leaves_gives_back_what_it_held_and_nothing_else(turns: TurnStore) -> None:
    turns.hold([Turn.DUTIES], "a", LONG)
    turns.hold([Turn.STATES], "b", LONG)
    turns.let_go("a")
    assert turns.hold([Turn.DUTIES, Turn.STATES], "c", LONG) == {Turn.DUTIES}


def test_of_many_that_want_it_at_once_one_gets_it(turns: TurnStore) -> None:
    start, got = Barrier(8), []

    def want(name: str) -> None:
        start.wait()
        if turns.hold([Turn.DUTIES], name, LONG):
            got.append(name)

    threads = [Thread(target=want, args=(f"process-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1


def test_processes_are_on_the_roll_while_they_are_seen(database: Database) -> None:
    roll = ProcessStore(database)
    report = Report(ready=False, troubles={"broker": "away"}, turns=("duties",), events_per_second=2.5)
    first = Process("host-1", frozenset({ProcessRole.WORKER}), NOW, NOW + timedelta(minutes=5), report)
    second = Process("host-2", frozenset(ProcessRole), NOW, NOW, Report(ready=True))
    for one in (first, second):
        roll.report(one)
    assert roll.since(NOW) == [first, second]
    assert roll.since(NOW + timedelta(minutes=1)) == [first]
    roll.leave("host-1")
    assert roll.since(NOW) == [second]


def test_who_left_without_a_word_is_struck_off_in_time(database: Database) -> None:
    roll = ProcessStore(database)
    roll.report(Process("gone", frozenset(ProcessRole), NOW, NOW, Report(ready=True)))
    later = NOW + timedelta(hours=2)
    roll.report(Process("here", frozenset(ProcessRole), NOW, later, Report(ready=True)))
    assert [one.name for one in roll.since(NOW)] == ["here"]
