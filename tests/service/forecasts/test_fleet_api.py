"""The fleet at a glance over REST: what a page is built on."""

import pytest

from service.app.service import Service
from service.app.stores import Stores
from service.machines.events import EventWrite
from service.machines.models import Machine
from tests.conftest import wait_until
from tests.service.conftest import FILLER, NOW, connect_agent, raise_alarms
from tests.support.api_client import Client, problem
from wire.identity import MachineId
from wire.rest.fleet import FleetOverview
from wire.timestamps import to_us


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


@pytest.mark.usefixtures("champion")
def test_the_answer_is_what_its_shape_says(client: Client, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, (NOW, 139))
    connect_agent(stores, filler)
    answer = client.get("/v1/fleet")
    assert answer.headers["content-type"] == "application/json"
    fleet = FleetOverview.model_validate_json(answer.content, strict=True)
    assert fleet.model_dump(mode="json") == answer.json()
    (card,) = fleet.cards
    assert card.last_alarm
    assert (card.last_alarm.text, card.last_alarm.severity) == ("Film torn", "high")
    assert {alarm.text for alarm in card.likely} == {"Film torn", "Door open"}


def test_a_fleet_without_machines_or_model_is_no_error(client: Client) -> None:
    fleet = client.get("/v1/fleet").json()
    assert (fleet["cards"], fleet["sites"], fleet["model_version"], fleet["complete"]) == ([], [], None, True)


@pytest.mark.usefixtures("champion")
def test_after_a_revision_comes_what_changed(
    client: Client, service: Service, stores: Stores, filler: Machine
) -> None:
    first = client.get("/v1/fleet").json()
    nothing = client.get("/v1/fleet", since=first["revision"]).json()
    assert (nothing["complete"], nothing["cards"]) == (False, [])
    raise_alarms(stores, filler, (NOW, 139))
    service.forecasts.cache.invalidate([FILLER])
    wait_until(lambda: client.get("/v1/fleet", since=first["revision"]).json()["cards"], "the card has changed")
    assert client.get("/v1/fleet", since="of another process.7").json()["complete"] is True


def test_who_knocks_is_named(client: Client, stores: Stores) -> None:
    stores.events.commit(EventWrite(to_us(NOW), unregistered={MachineId("lyon", "capper")}))
    (knock,) = client.get("/v1/fleet").json()["unregistered"]
    assert (knock["site"], knock["machine"]) == ("lyon", "capper")
    assert client.get("/v1/fleet", site="padova").json()["unregistered"] == []


@pytest.mark.parametrize("query", [{"site": "Not A Site"}, {"since": "x" * 101}])
def test_nonsense_is_refused_in_a_sentence(client: Client, query: dict[str, str]) -> None:
    problem(client.get("/v1/fleet", **query), 422)
