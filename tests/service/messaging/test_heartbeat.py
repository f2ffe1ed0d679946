"""Presence: a process says on the roll that it is there and how it is, and is struck off when it ends."""

from datetime import timedelta

from service.database.engine import Database
from service.messaging.cluster import Heartbeat
from service.messaging.cluster_store import ProcessRegistry
from service.messaging.process import HealthReport, ProcessInfo
from tests.conftest import wait_until
from tests.service.conftest import NOW
from wire.enums import ProcessRole


def presence(database: Database, name: str) -> Heartbeat:
    return Heartbeat(
        ProcessInfo(name, frozenset({ProcessRole.WORKER}), NOW),
        registry=ProcessRegistry(database),
        report=lambda: HealthReport(ready=True, leases=("leader",)),
    )


def test_it_says_on_the_roll_how_the_process_is_and_what_it_does(database: Database) -> None:
    presence(database, "host-1").send()
    (one,) = ProcessRegistry(database).recent(timedelta(minutes=1))
    assert (one.name, one.roles, one.report.leases) == ("host-1", frozenset({ProcessRole.WORKER}), ("leader",))


def test_who_ends_is_struck_off_and_nobody_else(database: Database) -> None:
    first, second = presence(database, "host-1"), presence(database, "host-2")
    first.send()
    second.send()
    first.stop()
    assert [one.name for one in ProcessRegistry(database).recent(timedelta(minutes=1))] == ["host-2"]


def test_what_has_changed_is_told_at_once(database: Database) -> None:
    turns: tuple[str, ...] = ()
    store = ProcessRegistry(database)
    one = Heartbeat(
        ProcessInfo("host-1", frozenset({ProcessRole.WORKER}), NOW),
        registry=store,
        report=lambda: HealthReport(ready=True, leases=turns),
        interval_s=3600,
    )

    def told() -> list[tuple[str, ...]]:
        return [found.report.leases for found in store.recent(timedelta(minutes=1))]

    one.start()
    wait_until(lambda: told() == [()], "it is on the roll")
    turns = ("leader",)
    one.trigger()
    wait_until(lambda: told() == [("leader",)], "its turn is on the roll")
    one.stop()
    assert told() == []
