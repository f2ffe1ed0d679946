"""Turns and processes: one holder at a time, taken over when its time is over, and everybody on the roll."""

import time
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from sqlalchemy import update

from service.database.engine import Database
from service.database.tables import processes
from service.messaging.cluster_store import LeaseStore, ProcessRegistry
from service.messaging.process import HealthReport, Lease, ProcessInfo
from tests.service.conftest import NOW
from wire.enums import ProcessRole

LONG, SHORT = timedelta(minutes=1), timedelta(milliseconds=50)


@pytest.fixture
def turns(database: Database) -> LeaseStore:
    return LeaseStore(database)


def test_a_turn_has_one_holder_who_keeps_it_for_as_long_as_it_is_renewed(turns: LeaseStore) -> None:
    assert turns.acquire([Lease.LEADER], "a", LONG) == {Lease.LEADER}
    assert turns.acquire([Lease.LEADER], "b", LONG) == set()
    assert turns.acquire([Lease.LEADER], "a", LONG) == {Lease.LEADER}


def test_turns_are_held_one_by_one(turns: LeaseStore) -> None:
    turns.acquire([Lease.LEADER], "a", LONG)
    assert turns.acquire([Lease.LEADER, Lease.AGENT_STATES], "b", LONG) == {Lease.AGENT_STATES}


def test_who_is_silent_for_too_long_loses_its_turn(turns: LeaseStore) -> None:
    turns.acquire([Lease.LEADER], "a", SHORT)
    time.sleep(2 * SHORT.total_seconds())
    assert turns.acquire([Lease.LEADER], "b", LONG) == {Lease.LEADER}
    assert turns.acquire([Lease.LEADER], "a", LONG) == set()


def test_who_leaves_gives_back_what_it_held_and_nothing_else(turns: LeaseStore) -> None:
    turns.acquire([Lease.LEADER], "a", LONG)
    turns.acquire([Lease.AGENT_STATES], "b", LONG)
    turns.release("a")
    assert turns.acquire([Lease.LEADER, Lease.AGENT_STATES], "c", LONG) == {Lease.LEADER}


def test_of_many_that_want_it_at_once_one_gets_it(turns: LeaseStore) -> None:
    start, got = Barrier(8), []

    def want(name: str) -> None:
        start.wait()
        if turns.acquire([Lease.LEADER], name, LONG):
            got.append(name)

    threads = [Thread(target=want, args=(f"process-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1


def grow_old(database: Database, name: str, span: timedelta) -> None:
    """Let a process have been silent for a while."""
    earlier = processes.c.last_seen_us - span // timedelta(microseconds=1)
    with database.write() as connection:
        connection.execute(update(processes).where(processes.c.name == name).values(last_seen_us=earlier))


def test_processes_are_on_the_roll_while_they_are_seen(database: Database) -> None:
    roll = ProcessRegistry(database)
    report = HealthReport(ready=False, errors={"broker": "away"}, leases=("leader",), events_per_second=2.5)
    first = ProcessInfo("host-1", frozenset({ProcessRole.WORKER}), NOW)
    roll.report(first, report)
    roll.report(ProcessInfo("host-2", frozenset(ProcessRole), NOW), HealthReport(ready=True))
    grow_old(database, "host-2", timedelta(minutes=5))
    one, two = roll.recent(timedelta(minutes=10))
    assert (one.name, one.roles, one.since, one.report) == (first.name, first.roles, first.since, report)
    assert two.name == "host-2"
    assert one.seen - two.seen > timedelta(minutes=4)
    assert roll.recent(timedelta(minutes=1)) == [one]
    roll.remove("host-1")
    assert roll.recent(timedelta(minutes=10)) == [two]


def test_who_left_without_a_word_is_struck_off_in_time(database: Database) -> None:
    roll = ProcessRegistry(database)
    roll.report(ProcessInfo("gone", frozenset(ProcessRole), NOW), HealthReport(ready=True))
    grow_old(database, "gone", timedelta(hours=2))
    roll.report(ProcessInfo("here", frozenset(ProcessRole), NOW), HealthReport(ready=True))
    assert [one.name for one in roll.recent(timedelta(days=1))] == ["here"]
