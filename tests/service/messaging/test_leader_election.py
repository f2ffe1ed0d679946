"""The steward: holds turns by its own clock, tells of every change, and gives them back at its end."""

from datetime import timedelta

import pytest

from service.database.engine import Database
from service.errors import Unavailable
from service.messaging.leader_election import LeaseKeeper
from service.messaging.lease_store import LeaseStore
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


class House:
    """A steward on a real store, by a clock of its own."""

    def __init__(self, database: Database, name: str = "host-1") -> None:
        self.clock, self.changes = Clock(), list[tuple[Lease, bool]]()
        self.turns = LeaseStore(database)
        self.steward = LeaseKeeper(
            ProcessInfo(name, frozenset({ProcessRole.WORKER}), NOW),
            {Lease.LEADER},
            turns=self.turns,
            changed=lambda turn, mine: self.changes.append((turn, mine)),
            lease=LEASE,
            monotonic=self.clock,
        )


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


def test_it_holds_nothing_before_it_has_asked(house: House) -> None:
    assert not house.steward.is_holder(Lease.LEADER)
    house.steward.renew()
    assert house.steward.is_holder(Lease.LEADER)
    assert house.changes == [(Lease.LEADER, True)]


def test_a_process_that_was_stopped_for_long_finds_its_turn_lost_before_anybody_tells_it(house: House) -> None:
    house.steward.renew()
    house.clock.now += LEASE.total_seconds() - 1  # the database gives it away a second later
    assert not house.steward.is_holder(Lease.LEADER)


def test_another_takes_over_at_once_when_it_ends(database: Database, house: House) -> None:
    other = House(database, "host-2")
    house.steward.renew()
    other.steward.renew()
    assert not other.steward.is_holder(Lease.LEADER)
    house.steward.stop()
    other.steward.renew()
    assert other.steward.is_holder(Lease.LEADER)
    assert not house.steward.is_holder(Lease.LEADER)


def test_a_database_that_is_away_costs_the_turn_only_when_its_time_is_over(house: House) -> None:
    house.steward.renew()
    house.turns.database.close()
    with pytest.raises(Unavailable):
        house.steward.renew()
    assert house.steward.is_holder(Lease.LEADER)
