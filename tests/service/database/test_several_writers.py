"""Several processes on one PostgreSQL: nothing lost, nothing doubled, and nobody waits in a circle."""

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import TypeVar
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, func, select, update

from service.database.engine import Database
from service.database.event_row import EventRow
from service.database.tables import (
    agents,
    catalogue,
    epochs,
    events,
    gaps,
    model_versions,
    promotions,
    quarantine,
    unregistered_machines,
)
from service.database.weight_files import WeightsFolder
from service.errors import Conflict, Unavailable
from service.forecasts.version import Version
from service.forecasts.version_store import VersionStore, champion_number, promote
from service.learning.enrolment_store import EnrolmentStore
from service.machines.catalogue import CatalogueEntry
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite, GapRow, QuarantineRow, WriteResult
from service.machines.models import Agent, Machine
from service.machines.retention import Retention
from service.machines.retention_store import RetentionStore
from service.machines.store import MachineStore
from tests.conftest import wait_until
from tests.service.conftest import NOW, enrolled, small_model
from wire.identity import MachineId
from wire.timestamps import to_us

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
DAY = timedelta(days=1)
Answer = TypeVar("Answer")


@pytest.fixture
def other(database: Database) -> Iterator[Database]:
    """The same database, as another process has it open."""
    opened = Database(database.url)
    yield opened
    opened.close()


@pytest.fixture
def machines(database: Database) -> list[Machine]:
    return [enrolled(EnrolmentStore(database), MachineId("padova", f"filler-{n}")) for n in range(6)]


def at_once(deeds: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Do all of it at the same moment, and return what came of each."""
    ready = Barrier(len(deeds))

    def run(deed: Callable[[], Answer]) -> Answer:
        ready.wait()
        return deed()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return [done.result(60) for done in [pool.submit(run, deed) for deed in deeds]]


def count(database: Database, table: Table) -> int:
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def wait_for_a_lock(database: Database, somebody: Future[Answer]) -> None:
    """Go on once somebody waits for what another has locked, or has ended without."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

    def waits() -> bool:
        with database.read() as connection:
            return somebody.done() or connection.exec_driver_sql(waiting).first() is not None

    wait_until(waits, "somebody waits for a lock")


def row(machine: Machine, epoch: UUID, seq: int, *, days: int = 0) -> EventRow:
    return EventRow(machine.row_id, epoch, seq, seq % 9, to_us(NOW - days * DAY) + seq, 0)


def mixed(machines: list[Machine], epoch: UUID, pieces: list[range], rng: random.Random) -> EventWrite:
    """Return what an ingester commits at once: some machines' events, states, gaps, refusals and strangers."""
    made = EventWrite(to_us(NOW))
    for machine in rng.sample(machines, len(machines)):
        numbers = rng.choice(pieces)
        made.events += [row(machine, epoch, seq, days=seq % 70) for seq in numbers]
        made.gaps.append(GapRow(machine.row_id, epoch, 10_000, 10_000 + numbers[-1], 1, 2, "spool_full"))
        refused = b"%d" % rng.randrange(5)
        made.quarantined.append(QuarantineRow(machine.row_id, f"t{machine.row_id}", "bad_code", "x", refused))
        if rng.random() < 0.5:
            made.agent_states[machine.row_id] = Agent(True, NOW, "1", epoch, 0, 0)  # noqa: FBT003 - as it stands there
        else:
            made.seen_machines.add(machine.row_id)
    made.unregistered = {MachineId("lyon", f"wrapper-{n}") for n in rng.sample(range(9), 4)}
    return made


def test_ingesters_that_get_the_same_messages_in_any_order_store_each_event_once(
    database: Database, other: Database, machines: list[Machine]
) -> None:
    epoch, pieces = uuid4(), [range(first, first + 20) for first in range(1, 301, 20)]
    stores = [EventStore(where) for where in (database, other, database, other)]

    def ingest(number: int) -> int:
        rng = random.Random(number)  # noqa: S311
        stored = sum(stores[number].commit(mixed(machines, epoch, pieces, rng)).stored for _ in range(25))
        everything = [row(machine, epoch, seq, days=seq % 70) for machine in machines for seq in range(1, 301)]
        return stored + stores[number].commit(EventWrite(to_us(NOW), events=everything)).stored

    stored = at_once([partial(ingest, number) for number in range(4)])
    assert sum(stored) == count(database, events) == 6 * 300
    assert (count(database, epochs), count(database, gaps), count(database, unregistered_machines)) == (6, 6, 9)
    assert count(database, quarantine) <= 6 * 5
    assert all(MachineStore(database).agent(machine) for machine in machines)


def test_states_refusals_and_strangers_in_any_order_never_wait_in_a_circle(
    database: Database, other: Database, machines: list[Machine]
) -> None:
    def ingest(number: int) -> None:
        store, rng = EventStore((database, other)[number % 2]), random.Random(number)  # noqa: S311
        for turn in range(30):
            refused = [QuarantineRow(None, "t", "bad_code", "x", b"%d of %d" % (one, turn)) for one in range(130)]
            rng.shuffle(refused)
            store.commit(EventWrite(to_us(NOW), quarantined=refused))
            whole = mixed(machines, uuid4(), [range(1, 2)], rng)
            store.commit(
                EventWrite(to_us(NOW), agent_states=whole.agent_states, seen_machines=whole.seen_machines)
            )
            store.commit(EventWrite(to_us(NOW), unregistered=whole.unregistered))

    at_once([partial(ingest, number) for number in range(4)])
    assert (count(database, agents), count(database, unregistered_machines), count(database, quarantine)) == (
        6,
        9,
        130 * 30,
    )


def test_of_two_bodies_that_come_at_once_in_different_months_one_is_stored(
    database: Database, other: Database, machines: list[Machine]
) -> None:
    stores, epoch = (EventStore(database), EventStore(other)), uuid4()
    for seq in range(1, 31):
        bodies = [EventWrite(to_us(NOW), events=[row(machines[0], epoch, seq, days=days)]) for days in (0, 40)]
        commits = [partial(store.commit, body) for store, body in zip(stores, bodies, strict=True)]
        assert sorted(at_once(commits), key=lambda one: one.stored) == [WriteResult(0, 0, 1), WriteResult(1, 0, 0)]
        assert count(database, events) == count(database, quarantine) == seq


def test_everybody_may_be_the_first_to_meet_an_epoch_a_month_and_a_stranger(
    database: Database, other: Database, machines: list[Machine]
) -> None:
    for days in (0, 100, 200, 300):
        epoch, stranger = uuid4(), MachineId("lyon", f"wrapper-{days}")
        met = EventWrite(to_us(NOW), events=[row(machines[0], epoch, 1, days=days)], unregistered={stranger})
        stores = [EventStore(where) for where in (database, other) * 3]
        recorded = at_once([partial(store.commit, met) for store in stores])
        assert sum(one.stored for one in recorded) == 1
    assert (count(database, epochs), count(database, unregistered_machines)) == (4, 4)


def test_a_connection_that_is_lost_while_events_are_stored_stores_none_and_is_worth_another_try(
    database: Database, other: Database, machines: list[Machine]
) -> None:
    store, met = EventStore(other), EventWrite(to_us(NOW), events=[row(machines[0], uuid4(), 1)])
    store.commit(EventWrite(to_us(NOW), events=[row(machines[0], uuid4(), 1)]))

    def cut_off() -> bool:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY events%%'"
        with database.read() as connection:
            return connection.exec_driver_sql(ended).first() is not None

    with ThreadPoolExecutor(1) as pool:
        with database.write() as connection:
            connection.exec_driver_sql("LOCK TABLE events_2026_11 IN ACCESS EXCLUSIVE MODE")
            committing = pool.submit(store.commit, met)
            wait_until(cut_off, "the commit stores its event")
        with pytest.raises(Unavailable):
            committing.result(60)
    assert count(database, events) == 1
    assert store.commit(met) == WriteResult(1, 0, 0)


def test_a_machine_is_erased_while_its_events_come(
    database: Database, other: Database, machines: list[Machine]
) -> None:
    machine, epoch, store = machines[0], uuid4(), EventStore(other)

    def ingest() -> int:
        rng = random.Random(5)  # noqa: S311
        return sum(store.commit(mixed([machine], epoch, [range(1, 400)], rng)).stored for _ in range(10))

    def erase() -> int:
        EnrolmentStore(database).erase(machine, who="anna", at=NOW, plant_at=NOW, reason="sold")
        return 0

    stored, _ = at_once([ingest, erase])
    assert stored in (0, 399), "whole before it was erased, or not at all"
    assert count(database, events) == count(database, epochs) == 0, "nothing follows an erasure"


def test_old_months_go_while_new_events_come(database: Database, other: Database, machines: list[Machine]) -> None:
    store, epoch = EventStore(other), uuid4()
    old = [row(machine, uuid4(), seq, days=200) for machine in machines for seq in range(1, 200)]
    store.commit(EventWrite(to_us(NOW), events=old))

    def ingest() -> int:
        return sum(
            store.commit(EventWrite(to_us(NOW), events=[row(machine, epoch, seq) for machine in machines])).stored
            for seq in range(1, 40)
        )

    def forget() -> int:
        return Retention(RetentionStore(database), keep=100 * DAY, keep_quarantined=DAY).apply(NOW)

    assert at_once([ingest, forget]) == [39 * 6, 199 * 6]
    assert count(database, events) == 39 * 6


def test_a_catalogue_that_is_merged_at_once_has_each_code_once(database: Database, other: Database) -> None:
    entries = [CatalogueEntry(code, f"Alarm {code}", "low", target=True) for code in range(50)]
    orders = [entries, list(reversed(entries))] * 2
    merges = [
        partial(CatalogueStore(where).merge, order)
        for where, order in zip((database, other) * 2, orders, strict=True)
    ]
    assert sum(at_once(merges)) == count(database, catalogue) == 50


def test_of_two_who_promote_at_once_one_is_told_that_another_serves(
    database: Database, other: Database, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = WeightsFolder(tmp_path_factory.mktemp("weights"))
    versions = VersionStore(database, folder)
    made = [versions.add_and_promote(small_model(seed=seed), report={}, at=NOW) for seed in (1, 2, 3)]

    def promote(where: Database, version: Version, serving: int) -> bool:
        try:
            VersionStore(where, folder).promote(version, at=NOW, who="anna", reason="better", serving=serving)
        except Conflict:
            return False
        return True

    for _ in range(10):
        champion = versions.champion()
        assert champion
        first, second = (version for version in made if version.id != champion.id)
        deeds = [
            partial(promote, database, first, champion.id),
            partial(promote, other, second, champion.id),
        ]
        assert sorted(at_once(deeds)) == [False, True]
    assert count(database, promotions) == 13


def test_looking_for_the_champion_waits_for_nobody_who_is_about_to_promote_another(
    database: Database, other: Database, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = WeightsFolder(tmp_path_factory.mktemp("weights"))
    served = VersionStore(database, folder).add_and_promote(small_model(), report={}, at=NOW)
    with ThreadPoolExecutor(1) as pool, database.write() as connection:
        assert champion_number(connection) == served.id
        assert pool.submit(VersionStore(other, folder).champion_number).result(10) == served.id


def test_weights_of_a_version_that_is_promoted_while_others_are_let_go_stay(
    database: Database, other: Database, tmp_path_factory: pytest.TempPathFactory
) -> None:
    versions = VersionStore(database, WeightsFolder(tmp_path_factory.mktemp("weights")))
    old, *_ = (versions.add_and_promote(small_model(seed=seed), report={}, at=NOW) for seed in (1, 2, 3, 4))
    with ThreadPoolExecutor(1) as pool:
        with database.write() as connection:
            assert champion_number(connection) == 4
            pruning = pool.submit(VersionStore(other, versions.weights).prune, keep=1)
            wait_for_a_lock(database, pruning)
            promote(connection, old.id, at=NOW, reason="better")
        assert pruning.result(30) == ["v3", "v2"]
    served = versions.champion()
    assert served
    assert served.id == old.id
    assert versions.load(served)


def test_a_version_whose_weights_are_let_go_while_it_is_promoted_does_not_begin_to_serve(
    database: Database, other: Database, tmp_path_factory: pytest.TempPathFactory
) -> None:
    versions = VersionStore(database, WeightsFolder(tmp_path_factory.mktemp("weights")))
    old, *_ = (versions.add_and_promote(small_model(seed=seed), report={}, at=NOW) for seed in (1, 2))
    promoting = partial(VersionStore(other, versions.weights).promote, old, at=NOW, who="anna", reason="better")
    with ThreadPoolExecutor(1) as pool:
        with database.write() as connection:
            champion_number(connection)
            promoted = pool.submit(promoting)
            wait_for_a_lock(database, promoted)
            gone = update(model_versions).where(model_versions.c.id == old.id).values(pruned=True)
            connection.execute(gone)
        with pytest.raises(Conflict, match="The weights of v1 have been deleted"):
            promoted.result(30)
    assert versions.champion_number() == 2
