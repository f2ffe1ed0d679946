"""The catalogue over REST: given as CSV, edited, exported."""

import pytest

from alarmcast import Conflict, NotFound, Rejected
from service.app.service import Service
from service.app.stores import Stores
from tests.support.api_client import Client, problem
from wire.enums import Severity
from wire.rest.catalogue import NO_RESPONSE, AlarmResponse, CatalogueMergeResult, EntryView


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


def test_the_catalogue_is_given_as_csv_and_a_conflict_changes_nothing(client: Client) -> None:
    head = "code,text,severity,target\n"
    assert client.catalogue.add(head + "7,Jaw cold,high,yes\n") == CatalogueMergeResult(entries=1, new=1)
    with pytest.raises(Conflict):
        client.catalogue.add(head + "8,New,low,no\n7,Jaw hot,high,yes\n")
    for wrong in (
        "nonsense",
        head + f'1,"{"x" * 200_000}",low,no\n',
        head + f"{'9' * 5000},Long,low,no\n",
        head + "1,Jam, in the folder,low,no\n",
        "",
    ):
        with pytest.raises(Rejected):
            client.catalogue.add(wrong)
    old = client.catalogue.add("code,text,severity,target\r9,Old line ends,low,no\r")
    assert old == CatalogueMergeResult(entries=1, new=1)
    known = EntryView(code=7, text="Jaw cold", severity="high", target=True, response=NO_RESPONSE)
    assert client.catalogue.get().entries[:1] == [known]


def test_an_entry_is_edited_and_exported_and_the_export_imports_without_a_change(
    client: Client, stores: Stores
) -> None:
    response = AlarmResponse(cause="=cold jaw", action='Heat it, "slowly"', link="https://wiki.example/7")
    client.catalogue.edit(7, text="Jaw cold", severity=Severity.HIGH, target=True, response=response)
    edited = client.catalogue.edit(7, text="Jaw too cold", severity=Severity.LOW, target=True, response=response)
    assert edited == client.catalogue.entry(7)
    assert (edited.text, edited.response) == ("Jaw too cold", response)
    file = b"".join(client.catalogue.export())
    assert b"'=cold jaw" in file, "a spreadsheet must not run it"
    assert client.catalogue.add(file).new == 0
    assert client.catalogue.entry(7) == edited
    assert [entry.action for entry in stores.audit.newest(2)] == ["add to catalogue", "edit catalogue"]
    with pytest.raises(NotFound):
        client.catalogue.entry(8)
    for link in ("javascript:alert(1)", "ftp://x", "https://", "http://a b", 'https://a"><script>'):
        body = {"text": "Jaw", "severity": "low", "target": True, "response": {"link": link}}
        problem(client.request("PUT", "/v1/catalogue/7", json=body), 422)
