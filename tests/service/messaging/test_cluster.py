"""A process among others: what it holds it keeps, however one of its parts is."""

from threading import Event

import pytest
from sqlalchemy import select

from service.database.engine import Database
from service.database.tables import leases
from service.messaging.bus import ChangeBus
from service.messaging.cluster import PostgresCluster
from service.messaging.process import HealthReport, Lease, ProcessInfo
from tests.conftest import wait_until
from tests.service.conftest import NOW
from wire.enums import ProcessRole

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def held_until(database: Database) -> int:
    with database.read() as connection:
        return connection.execute(select(leases.c.expires_us)).scalar() or 0


def test_a_turn_is_kept_while_a_report_waits_for_a_part_that_does_not_answer(database: Database) -> None:
    asked, answers = Event(), Event()

    def report(held: tuple[str, ...]) -> HealthReport:
        asked.set()
        answers.wait(60)
        return HealthReport(ready=True, leases=held)

    member = ProcessInfo("host-1", frozenset({ProcessRole.WORKER}), NOW)
    cluster = PostgresCluster(member, database, ChangeBus(), report)
    cluster.start()
    try:
        wait_until(lambda: asked.is_set() and cluster.is_holder(Lease.LEADER), "it holds its turn and is asked")
        first = held_until(database)
        wait_until(lambda: held_until(database) > first, "it has renewed its turn")
    finally:
        answers.set()
        cluster.stop()
