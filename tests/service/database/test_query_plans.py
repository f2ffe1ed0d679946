"""How PostgreSQL answers at two million events: from the months and the indexes that it needs, and nothing else.

Each store is asked as the service asks it; what it said to the database is then explained.
"""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Engine, event
from sqlalchemy.engine import make_url

from service.alarm_metrics.export_store import AlarmExports
from service.database.engine import Database
from service.database.event_row import EventRow
from service.learning.enrolment_store import EnrolmentStore
from service.machines.event_store import EventStore
from service.machines.events import Cursor, EventWrite, PageQuery, WriteResult
from service.machines.evidence_store import HourlyCountStore
from service.machines.models import Machine
from service.machines.retention_store import RetentionStore
from service.machines.store import MachineStore
from tests.service.database.large_dataset import EACH, FIRST, FLAGGED_EACH, LAST, MACHINES, MONTHS, at, fill
from wire.identity import MachineId
from wire.timestamps import to_us

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
IN_TIME = {month.table for month in MONTHS}
NOVEMBER, OCTOBER, AHEAD, FLAGGED = "events_2026_11", "events_2026_10", "events_2026_12", "events_flagged"
BY_INDEX = {"Index Only Scan", "Index Scan", "Bitmap Heap Scan"}  # the last one, too, is led by an index
FILLER = MachineId("padova", "filler-7")


@pytest.fixture(scope="module")
def large(postgresql: str) -> Iterator[Database]:
    """Two million events, beside the database of the other tests."""
    server, url = make_url(postgresql).set(drivername="postgresql"), make_url(postgresql).set(database="large")
    with psycopg.connect(server.render_as_string(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE large")
    with closing(Database(url.render_as_string())) as opened:
        fill(opened)
    # What is not answered from an index would take minutes; one that is missing shall be told sooner.
    hurried = url.update_query_dict({"options": "-c statement_timeout=10s"})
    with closing(Database(hurried.render_as_string())) as opened:
        yield opened
    with psycopg.connect(server.render_as_string(), autocommit=True) as connection:
        connection.execute("DROP DATABASE large")


@pytest.fixture
def filler(large: Database) -> Machine:
    return MachineStore(large).get(FILLER)


@dataclass
class Plans:
    """Every plan that a block of code has led to, as far as it looks into events."""

    scans: list[dict[str, Any]] = field(default_factory=list)
    steps: set[str] = field(default_factory=set)

    @property
    def tables(self) -> set[str]:
        return {str(scan["Relation Name"]) for scan in self.scans}

    @property
    def kinds(self) -> set[str]:
        return {str(scan["Node Type"]) for scan in self.scans}

    @property
    def in_order(self) -> bool:
        """Whether months were read one after the other, as far as needed: neither sorted nor all at once."""
        return not self.steps & {"Sort", "Incremental Sort", "Merge Append"}

    def add(self, node: dict[str, Any]) -> None:
        if node["Node Type"].endswith("Scan") and node.get("Relation Name", "").startswith("events"):
            self.scans.append(node)
        self.steps.add(node["Node Type"])
        for below in node.get("Plans", ()):
            self.add(below)


@contextmanager
def explained(database: Database) -> Iterator[Plans]:
    """Yield what becomes, at the end of the block, the plans of all that was said to the database in it."""
    said: list[tuple[str, Any]] = []
    plans = Plans()

    @event.listens_for(Engine, "before_cursor_execute")
    def overhear(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if " events" in statement:
            said.append((statement, parameters))

    try:
        yield plans
    finally:
        event.remove(Engine, "before_cursor_execute", overhear)
    assert said, "nothing was asked of the events"
    with database.read() as connection:
        for statement, parameters in said:
            plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
            found = json.loads(plan) if isinstance(plan, str) else plan
            plans.add(found[0]["Plan"])


def test_a_window_is_read_from_the_index_of_its_month(large: Database, filler: Machine) -> None:
    with explained(large) as plans:
        assert len(EventStore(large).series(filler, LAST - 29 * HOUR, LAST)) > 100
    assert (plans.tables, plans.kinds, plans.in_order) == ({NOVEMBER}, {"Index Only Scan"}, True)


def test_a_window_across_two_months_needs_both_and_no_sorting(large: Database, filler: Machine) -> None:
    end = LAST.replace(day=1) + HOUR
    with explained(large) as plans:
        EventStore(large).series(filler, end - 29 * HOUR, end)
    assert (plans.tables, plans.kinds, plans.in_order) == ({OCTOBER, NOVEMBER}, {"Index Only Scan"}, True)


def test_the_first_and_the_last_event_are_the_ends_of_the_index(large: Database, filler: Machine) -> None:
    store = EventStore(large)
    with explained(large) as plans:
        assert store.first_at(filler) == FIRST
        assert store.last_at(filler) == at(EACH)
    assert plans.kinds == {"Index Only Scan"}
    assert plans.tables == {*IN_TIME, AHEAD}
    assert plans.in_order


def test_strips_of_the_fleet_are_counted_in_the_index(large: Database) -> None:
    machines = MachineStore(large).all()
    with explained(large) as plans:
        strips = HourlyCountStore(large).counts(machines, LAST, 24)
    assert len(strips) == MACHINES
    assert all(strip.last_at == at(EACH) for strip in strips.values())
    assert plans.kinds == {"Index Only Scan"}
    assert plans.in_order
    assert FLAGGED not in plans.tables


@pytest.mark.parametrize("before", [None, Cursor(to_us(LAST - DAY), 7, 7, 40_000)], ids=["newest", "further"])
def test_a_page_of_alarms_is_read_by_index(large: Database, filler: Machine, before: Cursor | None) -> None:
    with explained(large) as plans:
        page = EventStore(large).page(filler, PageQuery(limit=50, before=before))
    assert len(page.alarms) == 50
    assert plans.kinds == {"Index Scan"}
    assert plans.in_order
    assert FLAGGED not in plans.tables


def test_flagged_alarms_are_looked_for_where_they_are(large: Database, filler: Machine) -> None:
    store = EventStore(large)
    with explained(large) as plans:
        assert len(store.page(filler, PageQuery(flagged=True)).alarms) == store.flagged(filler) == FLAGGED_EACH
    assert plans.tables == {FLAGGED}
    assert plans.kinds <= BY_INDEX


def test_what_arrived_of_a_gap_is_counted_in_the_key(large: Database, filler: Machine) -> None:
    with explained(large) as plans:
        gaps = EventStore(large).newest_gaps(filler, LAST - 90 * DAY, LAST, 1000)
    assert {gap.dropped for gap in gaps} == {0}
    assert plans.kinds == {"Index Only Scan"}


def test_an_export_reads_page_by_page_in_order(large: Database, filler: Machine) -> None:
    with explained(large) as plans:
        assert len(list(islice(AlarmExports(large).alarms(filler, LAST - 10 * DAY, LAST), 1100))) == 1100
    assert plans.tables <= {NOVEMBER, FLAGGED}
    assert plans.kinds <= BY_INDEX


def test_what_is_sent_again_is_looked_up_by_its_number(large: Database, filler: Machine) -> None:
    with large.read() as connection:
        epoch = connection.exec_driver_sql("SELECT epoch FROM epochs WHERE id = 7").scalar_one()
    rows = [again(filler, epoch, number) for number in range(30_000, 30_500)]
    with explained(large) as plans:
        assert EventStore(large).commit(EventWrite(to_us(LAST), events=rows)) == WriteResult(0, 500, 0)
    assert plans.kinds <= BY_INDEX


def again(machine: Machine, epoch: UUID, number: int) -> EventRow:
    return EventRow(
        machine.row_id, epoch, number, ((number - 1) * 7919 + machine.row_id) % 150, to_us(at(number)), 0
    )


def test_the_newest_and_the_oldest_of_all_are_looked_for_machine_by_machine(large: Database) -> None:
    with explained(large) as plans:
        assert MachineStore(large).latest_moment() == at(EACH)
        assert RetentionStore(large).oldest() == FIRST
    assert plans.kinds == {"Index Only Scan"}
    assert FLAGGED not in plans.tables


def test_forgetting_looks_into_old_months_only(large: Database) -> None:
    with explained(large) as plans:
        assert RetentionStore(large).delete_events(FIRST + HOUR / 60, most=2000) == MACHINES
    assert plans.tables == {"events_2025_10", FLAGGED}
    assert plans.kinds <= BY_INDEX


def test_erasing_a_machine_finds_its_events_by_index(large: Database) -> None:
    machine = MachineStore(large).get(MachineId("padova", f"filler-{MACHINES}"))
    with explained(large) as plans:
        EnrolmentStore(large).erase(machine, who="anna", at=LAST, plant_at=LAST, reason="sold")
    assert plans.kinds <= BY_INDEX
