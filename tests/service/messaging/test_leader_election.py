"""The keeper: holds turns by its own clock, tells of every change, and gives them back at its end."""

from datetime import timedelta

import pytest

from service.database.engine import Database
from service.errors import Unavailable
from service.messaging.bus import ChangeBus, LeaseChanged
from service.messaging.cluster import LeaseKeeper
from service.messaging.cluster_store import LeaseStore
from service.messaging.process import Lease, ProcessInfo
from tests.service.conftest import NOW
from wire.enums import ProcessRole

LEASE = timedelta(seconds=10)


class Clock:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class LeaseHarness:
    """A lease keeper on a real store, with its own clock."""

    def __init__(self, database: Database, name: str = "host-1") -> None:
        self.clock, self.changes = Clock(), list[LeaseChanged]()
        bus = ChangeBus()
        bus.subscribe(LeaseChanged, self.changes.append)
        self.leases = LeaseStore(database)
        self.keeper = LeaseKeeper(
            ProcessInfo(name, frozenset({ProcessRole.WORKER}), NOW),
            {Lease.LEADER},
            leases=self.leases,
            bus=bus,
            ttl=LEASE,
            monotonic=self.clock,
        )


@pytest.fixture
def harness(database: Database) -> LeaseHarness:
    return LeaseHarness(database)


def test_it_holds_nothing_before_it_has_asked(harness: LeaseHarness) -> None:
    assert not harness.keeper.is_holder(Lease.LEADER)
    harness.keeper.renew()
    assert harness.keeper.is_holder(Lease.LEADER)
    assert harness.changes == [LeaseChanged(Lease.LEADER, held=True)]


def test_a_process_that_was_suspended_finds_its_lease_expired_at_once(harness: LeaseHarness) -> None:
    harness.keeper.renew()
    harness.clock.now += LEASE.total_seconds() - 1  # the database gives it away a second later
    assert not harness.keeper.is_holder(Lease.LEADER)


def test_another_takes_over_at_once_when_it_ends(database: Database, harness: LeaseHarness) -> None:
    other = LeaseHarness(database, "host-2")
    harness.keeper.renew()
    other.keeper.renew()
    assert not other.keeper.is_holder(Lease.LEADER)
    harness.keeper.stop()
    other.keeper.renew()
    assert other.keeper.is_holder(Lease.LEADER)
    assert not harness.keeper.is_holder(Lease.LEADER)


def test_a_database_that_is_away_costs_the_turn_only_when_its_time_is_over(harness: LeaseHarness) -> None:
    harness.keeper.renew()
    harness.leases.database.close()
    with pytest.raises(Unavailable):
        harness.keeper.renew()
    assert harness.keeper.is_holder(Lease.LEADER)
