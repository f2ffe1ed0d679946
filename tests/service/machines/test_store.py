"""Machines and the catalogue: registered once, one meaning per code."""

import pytest

from service.database.engine import Database
from service.errors import Conflict, InputRejected, NotFound
from service.machines.catalogue import CatalogueEntry, parse_catalogue
from service.machines.catalogue_store import CatalogueStore
from service.machines.store import MachineStore
from wire.identity import MachineId
from wire.rest.catalogue import AlarmResponse

ID = MachineId("padova", "filler-1")


def test_a_machine_that_is_not_registered_is_not_found_and_the_error_says_what_to_do(database: Database) -> None:
    with pytest.raises(NotFound, match="alarmcast admin enrol padova/filler-1"):
        MachineStore(database).get(ID)


def test_a_catalogue_grows_but_a_code_keeps_its_meaning(database: Database) -> None:
    store = CatalogueStore(database)
    assert store.merge([CatalogueEntry(1, "Film torn", "high", target=True)]) == 1
    assert store.merge([CatalogueEntry(1, "Film torn", "low", target=False)]) == 0
    assert store.entries()[1] == CatalogueEntry(1, "Film torn", "low", target=False)
    with pytest.raises(Conflict, match="already means 'Film torn'"):
        store.merge(
            [CatalogueEntry(2, "New", "low", target=False), CatalogueEntry(1, "Door", "low", target=False)]
        )
    assert 2 not in store.entries(), "a conflicting catalogue must leave nothing behind"


def test_a_response_is_kept_where_a_catalogue_has_no_column_for_it(database: Database) -> None:
    store = CatalogueStore(database)
    store.merge(
        parse_catalogue("code,text,severity,target,cause,link\n1,Film torn,low,yes,Edge,https://w.example\n")
    )
    store.merge(parse_catalogue("Target,text,code,severity,cause\nyes,Film torn,1,high,\n"))
    response = AlarmResponse(link="https://w.example")
    assert store.entries()[1] == CatalogueEntry(1, "Film torn", "high", target=True, response=response)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must start with the line code,text,severity,target"),
        ("\ufeff", "must start with"),
        ("code,text\n1,x\n", "missing: severity, target"),
        ("code,text,severity,target,comment\n1,x,low,no,y\n", "columns at most once"),
        ("code,text,severity,target,link\n1,x,low,no,javascript:x\n", "Line 2 .*link must be an http or https"),
        (f"code,text,severity,target,cause\n1,x,low,no,{'x' * 501}\n", "Line 2 .*cause .* at most 500"),
        ("code,text,severity,target\n", "holds no alarm code"),
        ("code,text,severity,target\nx,Film,low,yes\n", "Line 2 .*'x' is not an alarm code"),
        ("code,text,severity,target\n1,,low,yes\n", "Line 2 .*text must have"),
        ("code,text,severity,target\n1,a\x07b,low,yes\n", "Line 2 .*text must have"),
        ("code,text,severity,target\n1,Film,awful,yes\n", "severity must be one of low, medium, high"),
        ("code,text,severity,target\n1,Film,low,maybe\n", "target must be yes or no"),
        ("code,text,severity,target\n1,Film,low,yes\n1,Film,low,yes\n", "a second time"),
    ],
)
def test_a_wrong_catalogue_names_its_line(text: str, sentence: str) -> None:
    with pytest.raises(InputRejected, match=sentence):
        parse_catalogue(text)
