"""Codes that machines describe, on SQLite and on PostgreSQL alike: added once, limited, never over an admin's."""

from datetime import UTC, datetime

import pytest

from service.database.engine import Database
from service.errors import Conflict
from service.forecasts.target_labels import is_target
from service.learning.enrolment_store import EnrolmentStore
from service.machines.catalogue import CatalogueEntry, described
from service.machines.catalogue_store import CatalogueStore
from service.machines.event_store import EventStore
from service.machines.events import EventWrite
from service.machines.limits_store import ExcessStore
from service.machines.models import ExcessKind, Machine, MachineLimits
from tests.service.conftest import enrolled
from wire.enums import EntryOrigin
from wire.events import CodeDescription
from wire.identity import MachineId
from wire.timestamps import to_us

AT = datetime(2026, 11, 16, tzinfo=UTC)
DOOR = CodeDescription(code=7, name="Infeed.Door", text="Door open", severity="900")


@pytest.fixture
def machine(database: Database) -> Machine:
    return enrolled(EnrolmentStore(database), MachineId("padova", "filler-1"))


def describe(database: Database, machine: Machine, *codes: CodeDescription, most: int = 2000) -> None:
    write = EventWrite(to_us(AT), codes=[(machine.row_id, code) for code in codes])
    EventStore(database, MachineLimits(codes=most)).commit(write)


def test_a_description_is_added_once_and_an_admin_completes_it(database: Database, machine: Machine) -> None:
    describe(database, machine, DOOR)
    describe(database, machine, DOOR.model_copy(update={"text": "Another text"}))
    entry = CatalogueStore(database).entries()[7]
    assert entry == CatalogueEntry(7, "Door open (Infeed.Door)", "high", target=False, origin=EntryOrigin.MACHINE)
    store = CatalogueStore(database)
    assert store.merge([entry]) == 0
    assert store.entries()[7] == entry, "what an export contains changes nothing"
    completed = CatalogueEntry(7, "Guard door open", "low", target=True)
    store.merge([completed])
    describe(database, machine, DOOR)
    assert store.entries()[7] == completed
    with pytest.raises(Conflict):
        store.merge([entry])


def test_the_descriptions_of_a_machine_are_limited_and_the_rest_is_counted(
    database: Database, machine: Machine
) -> None:
    codes = [CodeDescription(code=code, name=f"alarm {code}") for code in range(1, 6)]
    describe(database, machine, *codes, most=3)
    describe(database, machine, *codes[:4], most=3)
    assert sorted(CatalogueStore(database).entries()) == [1, 2, 3]
    (excess,) = ExcessStore(database).since(AT)
    assert (excess.kind, excess.items, excess.machine) == (ExcessKind.CODES, 3, machine.id)
    CatalogueStore(database).put(CatalogueEntry(1, "Jam", "high", target=True))
    describe(database, machine, *codes[:4], most=3)
    assert sorted(CatalogueStore(database).entries()) == [1, 2, 3, 4], "an entry of an admin does not count"


def test_a_retired_machine_describes_nothing(database: Database, machine: Machine) -> None:
    EnrolmentStore(database).retire(machine, who="test", at=AT, plant_at=AT, reason=None)
    describe(database, machine, DOOR)
    assert CatalogueStore(database).entries() == {}


def test_a_code_that_only_a_machine_describes_is_learned_like_an_unknown_one(
    database: Database, machine: Machine
) -> None:
    CatalogueStore(database).put(CatalogueEntry(1, "Jam", "high", target=False))
    describe(database, machine, DOOR)
    entries = CatalogueStore(database).entries()
    assert list(entries.of_admins()) == [1]
    assert [is_target(code, entries) for code in (1, 7, 8)] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "text", "severity", "shown"),
    [
        ("139", "Film torn", "1", ("Film torn", "medium")),
        ("139", "", "", ("Alarm 139", "medium")),
        ("Infeed/Jam", "", "Critical", ("Infeed/Jam", "high")),
        ("Infeed/Jam", " ", "333", ("Infeed/Jam", "low")),
        ("x" * 300, "", "334", ("x" * 200, "medium")),
        ("a\u200bb", "", "667", ("a b", "medium")),
        ("a", "", "668", ("a", "high")),
    ],
)
def test_text_and_severity_are_as_the_machine_states_them(
    name: str, text: str, severity: str, shown: tuple[str, str]
) -> None:
    entry = described(CodeDescription(code=139, name=name, text=text, severity=severity))
    assert (entry.text, entry.severity) == shown
