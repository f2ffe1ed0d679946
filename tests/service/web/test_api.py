"""REST over the real app on a real store: right answers to right questions, problems to wrong ones."""

import asyncio
import gzip
import json
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest

from service.bootstrap.service import Service
from service.bootstrap.stores import Stores
from service.core.machine import Machine
from service.settings import Settings
from tests.service.conftest import FILLER, NOW, enrolled, heard, raise_alarms, small_model
from wire.forecasts import Forecast
from wire.identity import MachineId
from wire.moment import isoformat

BASE = "/v1/machines/padova/filler-1"


class Client:
    """Speaks to the app in this process."""

    def __init__(self, service: Service) -> None:
        self._app = service.app

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, **more)

        return asyncio.run(ask())

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.request("GET", path, params=query)


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["detail"].endswith((".", "FILE")) or "alarmcast admin enrol" in body["detail"]
    return body


def test_a_machine_is_enrolled_once_and_the_same_again_is_fine(client: Client) -> None:
    body = {"site": "lyon", "machine": "filler-2", "name": "Filler 2", "time_zone": "Europe/Paris"}
    first = client.request("POST", "/v1/machines", json=body)
    assert (first.status_code, first.headers["location"]) == (202, "/v1/jobs/1")
    assert first.json()["machine"]["state"] == "registered"
    assert first.json()["job"]["state"] == "collecting"
    assert client.request("POST", "/v1/machines", json=body).json() == first.json()
    problem(client.request("POST", "/v1/machines", json=body | {"name": "Other"}), 409)
    assert client.get("/v1/machines/lyon/filler-2").json()["time_zone"] == "Europe/Paris"


def test_a_machine_may_bring_its_catalogue_and_a_conflicting_one_is_refused_whole(client: Client) -> None:
    head = "code,text,severity,target\n"
    body = {"site": "lyon", "machine": "a", "name": "A", "catalogue": head + "7,Jaw cold,high,yes\n"}
    assert client.request("POST", "/v1/machines", json=body).status_code == 202
    other = body | {"machine": "b", "catalogue": head + "7,Jaw hot,high,yes\n"}
    problem(client.request("POST", "/v1/machines", json=other), 409)
    assert [one["machine"] for one in client.get("/v1/machines").json()["machines"]] == ["a"]


def test_a_repeated_request_with_its_key_gets_its_answer_again(client: Client) -> None:
    body = {"site": "lyon", "machine": "filler-2", "name": "Filler 2"}
    headers = {"Idempotency-Key": "8e03978e"}
    first = client.request("POST", "/v1/machines", json=body, headers=headers)
    assert client.request("POST", "/v1/machines", json=body, headers=headers).json() == first.json()
    problem(client.request("POST", "/v1/machines", json=body | {"machine": "x"}, headers=headers), 409)


@pytest.mark.usefixtures("filler")
def test_history_is_uploaded_once_and_the_same_again_changes_nothing(client: Client, settings: Settings) -> None:
    rows = "timestamp,alarm,serial\n2026-11-10 08:00:00,5,1\nrubbish\n2026-11-10 09:00:00,5,2\n"
    answer = client.request("POST", f"{BASE}/history", content=rows.encode(), params={"name": "x.csv"}).json()
    assert answer["examples"][0].startswith("line 3: ")
    assert answer | {"examples": []} == {
        "stored": 2, "duplicates": 0, "flagged": 0, "quarantined": 1, "last_at": "2026-11-10T09:00:00.000Z",
        "rows": 3, "examples": [],
    }  # fmt: skip
    again = client.request("POST", f"{BASE}/history", content=gzip.compress(rows.encode())).json()
    assert (again["stored"], again["duplicates"]) == (0, 2)
    problem(client.request("POST", "/v1/machines/padova/none/history", content=b"x"), 404)
    problem(client.request("POST", f"{BASE}/history", content=b"x", params={"time_zone": "Mars"}), 422)
    assert list(settings.data_dir.glob("uploads/*")) == []


@pytest.mark.usefixtures("filler")
def test_a_history_that_is_too_large_is_refused(settings: Settings, stores: Stores) -> None:
    small = Client(Service(settings.model_copy(update={"history_max_mb": 1}), stores))
    problem(small.request("POST", f"{BASE}/history", content=b"x" * 1_000_001), 413)


@pytest.mark.usefixtures("filler", "champion")
def test_retiring_and_erasing_want_a_reason_and_take_effect(client: Client) -> None:
    problem(client.request("POST", f"{BASE}/retire", json={}), 422)
    assert client.request("POST", f"{BASE}/retire", json={"reason": "sold"}).json()["state"] == "retired"
    problem(client.request("POST", f"{BASE}/retire", json={"reason": "sold"}), 410)
    problem(client.request("POST", f"{BASE}/refresh"), 410)
    assert "has been retired" in problem(client.get(f"{BASE}/forecast"), 410)["detail"]
    assert client.get("/v1/machines").json()["machines"] == []
    assert len(client.get("/v1/machines", retired=True).json()["machines"]) == 1
    assert client.request("POST", f"{BASE}/erase", json={"reason": "asked"}).json() == {"learned_by": []}


@pytest.mark.usefixtures("filler")
def test_a_machine_that_was_never_learned_cannot_be_learned_again(client: Client) -> None:
    assert "enrolment goes on" in problem(client.request("POST", f"{BASE}/refresh"), 409)["detail"]


@pytest.mark.usefixtures("champion")
def test_versions_are_listed_promoted_and_rolled_back(client: Client, stores: Stores) -> None:
    stores.versions.add_and_promote(small_model(seed=2), report={"summary": "two"}, at=NOW - timedelta(hours=1))
    assert [(one["version"], one["standing"]) for one in client.get("/v1/models").json()["models"]] == [
        ("v2", "champion"), ("v1", "promoted"),
    ]  # fmt: skip
    detail = client.get("/v1/models/v2").json()
    assert (detail["report"], detail["targets"]) == ({"summary": "two"}, [139, 26])
    problem(client.request("POST", "/v1/models/v1/promote", json={}), 422)
    problem(client.request("POST", "/v1/models/v9/promote", json={"reason": "x"}), 404)
    problem(client.get("/v1/models/9"), 422)
    back = client.request("POST", "/v1/models/v1/promote", json={"reason": "two was worse"}).json()
    assert (back["version"], back["standing"]) == ("v1", "champion")
    problem(client.request("POST", "/v1/models/rollback", json={"reason": "further"}), 409)
    assert stores.audit.newest()[0].reason == "two was worse"


@pytest.mark.usefixtures("filler")
def test_a_job_is_told_once_in_a_list_and_as_it_happens(client: Client, stores: Stores) -> None:
    assert client.get("/v1/jobs/1").json()["machine"] == "filler-1"
    assert [job["id"] for job in client.get("/v1/jobs").json()["jobs"]] == [1]
    problem(client.get("/v1/jobs/2"), 404)
    problem(client.get("/v1/jobs/2/events"), 404)
    problem(client.get("/v1/jobs/0"), 422)
    client.request("POST", f"{BASE}/retire", json={"reason": "sold"})
    assert stores.jobs.get(1).state.value == "cancelled"
    stream = client.get("/v1/jobs/1/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    (event,) = [line for line in stream.text.splitlines() if line.startswith("data: ")]
    assert json.loads(event.removeprefix("data: "))["state"] == "cancelled"


@pytest.mark.parametrize(
    "change",
    [
        {"site": "Lyon"},
        {"machine": ""},
        {"name": ""},
        {"time_zone": "Mars/Olympus"},
        {"colour": "red"},
        {"site": 5},
        {"name": "a\0b"},
    ],
)
def test_a_machine_that_cannot_be_is_refused(client: Client, change: dict[str, Any]) -> None:
    body = {"site": "lyon", "machine": "filler-2", "name": "Filler 2", "time_zone": "UTC"} | change
    problem(client.request("POST", "/v1/machines", json=body), 422)
    assert client.get("/v1/machines").json()["machines"] == []


def test_the_fleet_lists_machines_their_agents_and_who_knocks(
    client: Client, stores: Stores, filler: Machine
) -> None:
    heard(stores, filler)
    (machine,) = client.get("/v1/machines").json()["machines"]
    assert machine["agent"] == {
        "online": True, "heard_at": isoformat(NOW), "version": "1", "spooled": 0, "skew_ms": 0,
    }  # fmt: skip


def test_an_unknown_machine_is_not_found_and_the_answer_says_how_to_register_it(client: Client) -> None:
    for path in ("", "/alarms", "/forecast"):
        answer = problem(client.get(f"/v1/machines/padova/filler-9{path}"), 404)
        assert "alarmcast admin enrol padova/filler-9" in answer["detail"]


@pytest.mark.usefixtures("champion")
def test_a_forecast_over_rest_is_the_forecast_of_the_contract(
    client: Client, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, (NOW - timedelta(hours=40), 137), (NOW - timedelta(hours=1), 139))
    heard(stores, filler)
    answer = client.get(f"{BASE}/forecast")
    forecast = Forecast.model_validate_json(answer.content)
    assert (forecast.site, forecast.machine, forecast.status.value) == ("padova", "filler-1", "ok")
    assert forecast.events_seen == 1
    assert client.get(f"{BASE}/forecast").content == answer.content


@pytest.mark.usefixtures("filler")
def test_without_a_model_a_forecast_is_unavailable_with_a_time_to_come_back(client: Client) -> None:
    answer = client.get(f"{BASE}/forecast")
    assert "alarmcast admin enrol" in problem(answer, 503)["detail"]
    assert int(answer.headers["retry-after"]) > 0
    problem(client.get("/v1/forecasts"), 503)


@pytest.mark.usefixtures("champion", "filler")
def test_a_past_moment_can_be_asked_about_and_the_future_cannot(client: Client) -> None:
    past = client.get(f"{BASE}/forecast", at=isoformat(NOW - timedelta(hours=3))).json()
    assert (past["as_of"], past["hindsight"]) == (isoformat(NOW - timedelta(hours=3)), False)
    problem(client.get(f"{BASE}/forecast", at=isoformat(NOW + timedelta(hours=3))), 422)
    problem(client.get(f"{BASE}/forecast", at="2000-01-01T12:00:00Z"), 422)


@pytest.mark.usefixtures("champion", "filler")
@pytest.mark.parametrize(
    "at", ["yesterday", "2026-11-16T00:00:00", "1999-12-31T00:00:00Z", "9999-01-01T00:00:00Z", "", "\x00"]
)
def test_a_moment_that_is_none_is_refused(client: Client, at: str) -> None:
    assert problem(client.get(f"{BASE}/forecast", at=at), 422)["errors"][0]["pointer"] == "query/at"


@pytest.mark.usefixtures("champion")
def test_the_fleets_forecasts_come_most_urgent_first(client: Client, stores: Stores, filler: Machine) -> None:
    enrolled(stores.enrolments, MachineId("lyon", "filler-2"))
    raise_alarms(stores, filler, (NOW - timedelta(hours=40), 137), (NOW - timedelta(hours=1), 139))
    forecasts = client.get("/v1/forecasts").json()["forecasts"]
    assert {(one["site"], one["machine"]) for one in forecasts} == {FILLER, ("lyon", "filler-2")}

    def expected(forecast: dict[str, Any]) -> float:
        return max((alarm["probability"] for alarm in forecast["alarms"] if alarm["expected"]), default=0.0)

    assert expected(forecasts[0]) >= expected(forecasts[1])


@pytest.mark.usefixtures("champion")
def test_history_comes_in_pages_that_a_cursor_joins(client: Client, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *((NOW - timedelta(minutes=n), 139 if n % 2 else 4) for n in range(1, 26)))
    pages, cursor = [], None
    while True:
        page = client.get(f"{BASE}/alarms", limit=10, **({"cursor": cursor} if cursor else {})).json()
        pages.append(page["alarms"])
        cursor = page["next"]
        if cursor is None:
            break
    assert [len(page) for page in pages] == [10, 10, 5]
    moments = [alarm["at"] for page in pages for alarm in page]
    assert moments == sorted(moments, reverse=True)
    assert pages[0][0]["text"] == "Film torn"
    assert pages[0][1]["text"] == "Alarm 4", "a code the catalogue does not know still has a name"


@pytest.mark.usefixtures("filler")
@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 1001},
        {"cursor": "x"},
        {"cursor": "MS4yLjM"},
        {"cursor": "é"},
        {"code": -1},
        {"since": "now"},
        {"limit": "ten"},
    ],
)
def test_a_wrong_question_about_history_is_refused(client: Client, query: dict[str, Any]) -> None:
    problem(client.get(f"{BASE}/alarms", **query), 422)


def test_the_catalogue_is_given_as_csv_and_a_conflict_changes_nothing(client: Client) -> None:
    def give(body: str) -> httpx.Response:
        return client.request("POST", "/v1/catalogue", content=body.encode(), headers={"Content-Type": "text/csv"})

    head = "code,text,severity,target\n"
    assert give(head + "7,Jaw cold,high,yes\n").json() == {"entries": 1, "new": 1}
    problem(give(head + "8,New,low,no\n7,Jaw hot,high,yes\n"), 409)
    problem(give("nonsense"), 422)
    problem(give(head + f'1,"{"x" * 200_000}",low,no\n'), 422)
    problem(give(head + f"{'9' * 5000},Long,low,no\n"), 422)
    problem(give(head + "1,Jam, in the folder,low,no\n"), 422)
    assert give("code,text,severity,target\r9,Old line ends,low,no\r").json() == {"entries": 1, "new": 1}
    problem(give(""), 422)
    assert client.get("/v1/catalogue").json()["entries"][:1] == [
        {"code": 7, "text": "Jaw cold", "severity": "high", "target": True}
    ]


def test_without_a_broker_the_service_lives_but_is_not_ready_and_says_why(client: Client) -> None:
    assert client.get("/livez").json() == {"status": "alive"}
    assert client.request("HEAD", "/livez").status_code == 200
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "broker" in answer.json()["troubles"]
    assert client.get("/v1/status").json()["ready"] is False


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("DELETE", "/v1/machines", 405)])
def test_even_the_frameworks_own_errors_are_problems(client: Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_documentation_is_complete_and_its_references_hold(client: Client) -> None:
    document = client.get("/openapi.json").json()
    assert "Problem" in document["components"]["schemas"]
    text = str(document)
    for name in document["components"]["schemas"]:
        assert f"#/components/schemas/{name}" in text or name == "Problem"
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["description"], operation


def test_the_documentation_loads_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/docs").text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert loaded
    for address in loaded:
        assert address.startswith("/"), address
        assert client.get(address).status_code == 200
