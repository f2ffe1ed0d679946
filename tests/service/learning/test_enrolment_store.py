"""Enrolment in the store, on SQLite and on PostgreSQL alike: once, however often it is asked for."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from service.auth.audit_store import AuditStore
from service.database.engine import Database
from service.database.event_row import EventRow
from service.database.tables import events, jobs, machines
from service.errors import Conflict
from service.http.message import Message
from service.learning.enrolment_store import EnrolmentStore
from service.learning.job_store import JobStore
from service.learning.models import Enrolled, NewMachine
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.event_write import EventWrite
from service.machines.store import MachineStore
from tests.service.conftest import enrolled
from wire.enums import JobKind, JobState, MachineState
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
ID = MachineId("padova", "filler-1")
WISH = NewMachine(ID, "Filler", "UTC")


def enrol(database: Database, wish: NewMachine = WISH, key: str | None = None) -> Enrolled:
    return EnrolmentStore(database).enrol(wish, key=key, who="test", at=AT, plant_at=AT)


def count(database: Database, table: object) -> int:
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()  # type: ignore[arg-type]


def test_enrolling_again_returns_the_same_job_and_changes_nothing(database: Database) -> None:
    first = enrol(database)
    assert first.is_new
    assert enrol(database) == Enrolled(first.job, is_new=False)
    assert (count(database, machines), count(database, jobs)) == (1, 1)
    machine = MachineStore(database).get(ID)
    assert (machine.state, machine.name) == (MachineState.REGISTERED, "Filler")
    job = JobStore(database).get(first.job)
    assert (job.kind, job.state, job.machine) == (JobKind.ENROL, JobState.COLLECTING, ID)


def test_what_an_enrolment_changes_for_the_whole_fleet_is_written_down(database: Database) -> None:
    def deeds(*lines: str) -> list[tuple[str, str, str]]:
        before = len(AuditStore(database).newest())
        enrol(database, replace(WISH, catalogue="\n".join(["code,text,severity,target", *lines])))
        found = AuditStore(database).newest()
        return [(deed.actor, deed.action, deed.subject) for deed in found[: len(found) - before]]

    catalogue = "add to catalogue"
    lines = ("139,Film torn,high,yes", "29,Strip missing,low,no")
    enrolled = ("test", "enrol", "padova/filler-1")
    assert deeds(*lines) == [enrolled, ("test", catalogue, "2 new codes (139, 29)")]
    assert deeds(*lines) == []
    assert deeds("139,Film torn,low,yes", lines[1]) == [
        ("test", catalogue, "0 new codes, 1 changed (139)"),
    ]
    assert deeds("139,Film torn,low,no", "5,Door open,low,no") == [
        ("test", catalogue, "1 new codes (5), 1 changed (139)"),
    ]


@pytest.mark.parametrize("key", [None, "the same key"])
def test_ten_at_once_make_one_machine_and_one_job(database: Database, key: str | None) -> None:
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: enrol(database, key=key), range(10)))
    assert len({answer.job for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1
    assert (count(database, machines), count(database, jobs)) == (1, 1)


def test_ten_different_wishes_with_one_key_make_one_machine(database: Database) -> None:
    def wish(number: int) -> bool:
        try:
            enrol(database, NewMachine(MachineId("lyon", f"n{number}"), "N", "UTC"), key="one")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(wish, range(10))) == 1
    assert count(database, machines) == 1


def test_what_is_not_said_again_stays_as_it_was(database: Database) -> None:
    enrol(database)
    assert not enrol(database, NewMachine(ID)).is_new
    assert MachineStore(database).get(ID).name == "Filler"
    enrol(database, NewMachine(MachineId("lyon", "x")))
    bare = MachineStore(database).get(MachineId("lyon", "x"))
    assert (bare.name, bare.time_zone) == ("x", "UTC")


def test_a_refused_wish_leaves_the_catalogue_as_it_was(database: Database) -> None:
    enrol(database)
    with pytest.raises(Conflict, match="registered already"):
        enrol(database, NewMachine(ID, "Other", "UTC", "code,text,severity,target\n9,Nine,low,yes\n"))
    assert CatalogueStore(database).entries() == {}


def test_a_key_belongs_to_one_request(database: Database) -> None:
    first = enrol(database, key="k")
    assert enrol(database, key="k").job == first.job
    with pytest.raises(Conflict, match="was used for another request"):
        enrol(database, NewMachine(MachineId("lyon", "x"), "X", "UTC"), key="k")
    assert count(database, machines) == 1


def test_enrolling_it_differently_is_a_conflict_that_leaves_nothing_behind(database: Database) -> None:
    enrol(database)
    with pytest.raises(Conflict, match="registered already, as 'Filler'"):
        enrol(database, NewMachine(ID, "Other", "UTC"), key="k")
    assert enrol(database, NewMachine(MachineId("lyon", "x"), "X", "UTC"), key="k").is_new


def test_a_retired_machine_is_gone_its_job_ends_and_it_may_come_back_otherwise(database: Database) -> None:
    enrolments, store = EnrolmentStore(database), MachineStore(database)
    first = enrol(database)
    enrolments.retire(store.get(ID), who="test", at=AT, plant_at=AT, reason="sold")
    assert store.all() == []
    assert [machine.state for machine in store.all(retired=True)] == [MachineState.RETIRED]
    assert JobStore(database).get(first.job).state is JobState.CANCELLED
    again = enrol(database, NewMachine(ID, "Another name", "UTC"))
    assert again.is_new
    assert again.job != first.job
    assert store.get(ID).name == "Another name"


def test_a_retired_machine_comes_back_as_it_was_where_nothing_else_is_said(database: Database) -> None:
    enrolments, store = EnrolmentStore(database), MachineStore(database)
    enrol(database, NewMachine(ID, "Filler of line 3", "Europe/Rome"))
    enrolments.retire(store.get(ID), who="test", at=AT, plant_at=AT, reason="overhaul")
    enrol(database, NewMachine(ID, None, None))
    back = store.get(ID)
    assert (back.name, back.time_zone, back.state) == ("Filler of line 3", "Europe/Rome", MachineState.REGISTERED)


def test_erasing_removes_what_a_machine_told_and_writes_down_that_it_did(database: Database) -> None:
    machine = enrolled(EnrolmentStore(database), ID)
    other = enrolled(EnrolmentStore(database), MachineId("lyon", "x"))
    log = EventStore(database)
    rows = [EventRow(one.row_id, uuid4(), seq, 5, to_us(AT), 0) for one in (machine, other) for seq in range(1, 4)]
    log.commit(EventWrite(to_us(AT), events=rows))
    learned = EnrolmentStore(database).erase(machine, who="me", at=AT, plant_at=AT, reason="asked to")
    assert learned == []
    assert count(database, events) == 3
    assert log.first_at(machine) is None
    deed = AuditStore(database).newest()[0]
    assert (deed.actor, deed.action, deed.subject) == ("me", "erase", "padova/filler-1")
    assert deed.reason == "asked to (learned by no version)"
    erased = MachineStore(database).get(ID)
    assert EnrolmentStore(database).erase(erased, who="me", at=AT, plant_at=AT, reason="again") == []
    assert MachineStore(database).get(ID).reason == Message.of("Erased; it had been learned by no version.")
    assert enrol(database).is_new, "an erased machine may come back with nothing"


def test_a_failed_machine_is_tried_again_when_it_is_enrolled_again(database: Database) -> None:
    first = enrol(database)
    board = JobStore(database)
    board.queue(board.get(first.job))
    claimed = board.claim("me", now=AT, lease=timedelta(minutes=1))
    assert claimed
    board.fail(claimed, Message.of("It broke."), now=AT, plant_now=AT)
    machine = MachineStore(database).get(ID)
    assert (machine.state, machine.reason) == (MachineState.FAILED, Message.of("It broke."))
    again = enrol(database)
    assert again.job != first.job
    assert board.get(again.job).state is JobState.COLLECTING
