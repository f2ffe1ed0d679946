"""Signals over a real PostgreSQL: heard by all others once committed; after a loss everything is looked at."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest
from sqlalchemy import text

from service.database.engine import Database
from service.messaging.change_event import ChangeEvent, ChangeKind
from service.messaging.pg_listen import PgNotify
from service.messaging.pg_notify import notify
from tests.conftest import wait_until


class Ear:
    """Remembers what it heard, and how often it had been deaf."""

    def __init__(self) -> None:
        self.heard: list[ChangeEvent] = []
        self.deaf = 0

    def note_deaf(self) -> None:
        self.deaf += 1


@contextmanager
def listening(signals: PgNotify) -> Iterator[Ear]:
    ear, stopping = Ear(), Event()
    thread = Thread(target=signals.listen, args=(ear.heard.append, ear.note_deaf, stopping))
    thread.start()
    try:
        wait_until(lambda: ear.deaf, "it listens")
        yield ear
    finally:
        stopping.set()
        thread.join()


pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def test_all_others_hear_and_the_sender_does_not(database: Database) -> None:
    anna, ben = PgNotify(database), PgNotify(database)
    with listening(anna) as hers, listening(ben) as his:
        anna.send([ChangeEvent(ChangeKind.SUPPRESSION_CHANGED, {"site": "padova", "machine": None})])
        ben.send([ChangeEvent(ChangeKind.PERMISSIONS_CHANGED)])
        wait_until(lambda: his.heard and hers.heard, "both have heard")
    assert his.heard == [ChangeEvent(ChangeKind.SUPPRESSION_CHANGED, {"site": "padova", "machine": None})]
    assert hers.heard == [ChangeEvent(ChangeKind.PERMISSIONS_CHANGED)]


def test_what_is_rolled_back_is_never_heard(database: Database) -> None:
    with listening(PgNotify(database)) as ear:
        with suppress(ZeroDivisionError), database.write() as connection:
            notify(connection, ChangeEvent(ChangeKind.CHAMPION_CHANGED))
            _ = 1 / 0
        with database.write() as connection:
            notify(connection, ChangeEvent(ChangeKind.PERMISSIONS_CHANGED))
        wait_until(lambda: ear.heard, "the second is heard")
    assert ear.heard == [ChangeEvent(ChangeKind.PERMISSIONS_CHANGED)]


def test_a_lost_connection_is_made_again_and_told(database: Database) -> None:
    signals = PgNotify(database)
    with listening(signals) as ear:
        with database.write() as connection:
            connection.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
            )
        wait_until(lambda: ear.deaf == 2, "it listens again", seconds=20)
        PgNotify(database).send([ChangeEvent(ChangeKind.CHAMPION_CHANGED)])
        wait_until(lambda: ear.heard, "it hears again")
    assert signals.error is None
