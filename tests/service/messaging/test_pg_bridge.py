"""The bus over a real PostgreSQL: all others receive what is committed; after a lost connection all is invalid."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import text

from service.database.engine import Database
from service.messaging.bus import (
    ChampionPromoted,
    Change,
    ChangeBus,
    ChangesMissed,
    EventsStored,
    PermissionsChanged,
    SuppressionChanged,
)
from service.messaging.cluster_store import notify
from service.messaging.pg_bridge import ChangeSender, PgBridge
from tests.conftest import wait_until
from tests.service.conftest import FILLER
from wire.identity import MachineId

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


class Peer:
    """The bus of one process, and what was delivered on it."""

    def __init__(self, database: Database, name: str) -> None:
        self.bus = ChangeBus()
        self.bridge = PgBridge(self.bus, database, name)
        self.received: list[Change] = []
        self.missed = 0
        self.fails = False
        self.bus.subscribe(ChampionPromoted, self.receive)
        self.bus.subscribe(EventsStored, self.receive)
        self.bus.subscribe(PermissionsChanged, self.receive)
        self.bus.subscribe(SuppressionChanged, self.receive)
        self.bus.subscribe(ChangesMissed, self.count_missed)

    def receive(self, change: Change) -> None:
        if self.fails:
            self.fails = False
            raise RuntimeError("the cache is broken")
        self.received.append(change)

    def count_missed(self, _event: ChangesMissed) -> None:
        self.missed += 1


@contextmanager
def running(database: Database, name: str) -> Iterator[Peer]:
    peer = Peer(database, name)
    peer.bridge.start()
    try:
        wait_until(lambda: peer.missed, "it listens")
        yield peer
    finally:
        peer.bridge.stop()


def test_all_other_processes_receive_a_change_and_the_sender_only_its_own_delivery(database: Database) -> None:
    with running(database, "one") as one, running(database, "two") as two:
        one.bus.publish(SuppressionChanged("padova", None))
        two.bus.publish(PermissionsChanged())
        wait_until(lambda: len(one.received) == len(two.received) == 2, "both have received both")
        one.bus.publish(EventsStored(frozenset({FILLER})))
        wait_until(lambda: len(two.received) == 3, "the third has arrived")
    both: list[Change] = [SuppressionChanged("padova", None), PermissionsChanged()]
    assert one.received == [*both, EventsStored(frozenset({FILLER}))]
    assert two.received[-1] == EventsStored(frozenset({FILLER}))
    assert sorted(map(repr, two.received[:2])) == sorted(map(repr, both))


def test_what_is_rolled_back_is_never_received(database: Database) -> None:
    with running(database, "one") as peer:
        with suppress(ZeroDivisionError), database.write() as connection:
            notify(connection, ChampionPromoted())
            _ = 1 / 0
        with database.write() as connection:
            notify(connection, PermissionsChanged())
        wait_until(lambda: peer.received, "the second is received")
    assert peer.received == [PermissionsChanged()]


def test_a_lost_connection_is_made_again_and_everything_invalidated(database: Database) -> None:
    with running(database, "one") as peer:
        with database.write() as connection:
            connection.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
            )
        wait_until(lambda: peer.missed == 2, "it listens again", seconds=20)
        with database.write() as connection:
            notify(connection, ChampionPromoted(), sender="two")
        wait_until(lambda: peer.received, "it receives again")
        assert peer.bridge.error is None


def test_a_handler_that_fails_is_reported_and_everything_invalidated(database: Database) -> None:
    with running(database, "one") as peer:
        peer.fails = True
        with database.write() as connection:
            notify(connection, ChampionPromoted(), sender="two")
        wait_until(lambda: peer.bridge.error, "the error is reported")
        wait_until(lambda: peer.missed == 2 and peer.bridge.error is None, "everything is invalidated")


def test_a_batch_that_cannot_be_sent_is_an_error_until_the_next_succeeds(database: Database) -> None:
    with running(database, "one") as one:
        too_long = MachineId("s" * 9000, "m")  # longer than PostgreSQL allows
        sender = ChangeSender(database, "two")
        sender.start()
        sender.add(EventsStored(frozenset({too_long})))
        wait_until(lambda: sender.error, "the error is reported")
        sender.add(EventsStored(frozenset({FILLER})))
        wait_until(lambda: one.received, "the next batch is received")
        sender.stop()
    assert one.received == [EventsStored(frozenset({FILLER}))]
    assert sender.last_error is None
