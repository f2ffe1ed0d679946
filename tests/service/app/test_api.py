"""REST over the real app on a real store: right answers to right questions, problems to wrong ones."""

import gzip
import re
import tomllib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import alarmcast
from alarmcast import Conflict, Gone, InProcess, NotFound, Rejected, TooLarge, Unavailable
from service.app.service import Service
from service.app.stores import Stores
from service.forecasts.alarm_value import highest_value
from service.machines.models import Machine
from service.messaging.bus import ResourceChanged
from service.settings import Settings
from tests.service.conftest import FILLER, NOW, connect_agent, enrolled, raise_alarms, small_model
from tests.support.api_client import BASE, Client, problem
from wire.forecasts import Forecast
from wire.identity import MachineId
from wire.rest.enrolment import HistoryLoaded
from wire.rest.machines import AgentView


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service)


def test_a_machine_is_enrolled_once_and_the_same_again_is_fine(client: Client) -> None:
    body = {"site": "lyon", "machine": "filler-2", "name": "Filler 2", "time_zone": "Europe/Paris"}
    first = client.request("POST", "/v1/machines", json=body)
    assert (first.status_code, first.headers["location"]) == (202, "/v1/jobs/1")
    assert first.json()["machine"]["state"] == "registered"
    assert first.json()["job"]["state"] == "collecting"
    assert client.request("POST", "/v1/machines", json=body).json() == first.json()
    problem(client.request("POST", "/v1/machines", json=body | {"name": "Other"}), 409)
    assert client.machines.get("lyon/filler-2").time_zone == "Europe/Paris"


def test_only_a_request_that_has_written_something_is_published(service: Service, client: Client) -> None:
    written: list[ResourceChanged] = []
    service.bus.subscribe(ResourceChanged, written.append)
    client.machines.list()
    with pytest.raises(NotFound):
        client.enrolment.retire("lyon/filler-9", reason="it was sold")
    assert written == []
    client.enrolment.enrol("lyon/filler-2")
    assert written == [ResourceChanged()]


def test_a_machine_may_bring_its_catalogue_and_a_conflicting_one_is_refused_whole(client: Client) -> None:
    head = "code,text,severity,target\n"
    client.enrolment.enrol("lyon/a", catalogue=head + "7,Jaw cold,high,yes\n")
    with pytest.raises(Conflict):
        client.enrolment.enrol("lyon/b", catalogue=head + "7,Jaw hot,high,yes\n")
    assert [one.machine for one in client.machines.list().machines] == ["a"]


def test_a_repeated_request_with_its_key_gets_its_answer_again(client: Client) -> None:
    first = client.enrolment.enrol("lyon/filler-2", idempotency_key="8e03978e")
    assert client.enrolment.enrol("lyon/filler-2", idempotency_key="8e03978e") == first
    with pytest.raises(Conflict):
        client.enrolment.enrol("lyon/x", idempotency_key="8e03978e")


@pytest.mark.usefixtures("filler")
def test_history_is_uploaded_once_and_the_same_again_changes_nothing(client: Client, settings: Settings) -> None:
    rows = "timestamp,alarm,serial\n2026-11-10 08:00:00,5,1\nrubbish\n2026-11-10 09:00:00,5,1\n"
    loaded = client.enrolment.load_history(FILLER, rows.encode(), name="x.csv")
    assert loaded.examples[0].startswith("line 3: ")
    assert loaded.model_dump(mode="json", exclude={"examples", "edge_toml_source"}) == {
        "stored": 2, "duplicates": 0, "flagged": 0, "too_old": 0, "from_the_future": 0, "quarantined": 1,
        "notes": [], "rows": 3, "time_zone": "Europe/Rome", "last_at": "2026-11-10T08:00:00.000Z",
    }  # fmt: skip
    again = client.enrolment.load_history(FILLER, gzip.compress(rows.encode()))
    assert (again.stored, again.duplicates) == (0, 2)
    with pytest.raises(NotFound):
        client.enrolment.load_history("padova/none", b"x")
    with pytest.raises(Rejected, match="Mars"):
        client.enrolment.load_history(FILLER, b"x", time_zone="Mars")
    assert list(settings.data_dir.glob("uploads/*")) == []


@pytest.mark.usefixtures("filler")
@pytest.mark.parametrize(
    ("asked", "zone", "last"),
    [
        ({}, "Europe/Rome", "2026-11-10T08:00:00.000Z"),
        ({"time_zone": ""}, "Europe/Rome", "2026-11-10T08:00:00.000Z"),
        ({"time_zone": "UTC"}, "UTC", "2026-11-10T09:00:00.000Z"),
        ({"time_zone": "Asia/Kolkata", "serial": "1"}, "Asia/Kolkata", "2026-11-10T03:30:00.000Z"),
    ],
)
def test_a_history_is_read_in_the_zone_of_its_machine_unless_another_is_given(
    client: Client, asked: dict[str, str], zone: str, last: str
) -> None:
    body = b"timestamp,alarm,serial\n2026-11-10 09:00:00,5,1\n"
    response = client.request("POST", f"{BASE}/history", params=asked, content=body)
    loaded = HistoryLoaded.model_validate(response.json())
    assert loaded.model_dump(mode="json")["last_at"] == last
    assert loaded.edge_toml_source
    source = tomllib.loads(loaded.edge_toml_source)
    assert (source["timezone"], source.get("serial")) == (zone, asked.get("serial"))
    assert source["since"] - datetime.fromisoformat(last) == timedelta(microseconds=1)


@pytest.mark.usefixtures("filler")
def test_a_history_that_is_too_large_is_refused(settings: Settings, stores: Stores) -> None:
    small = Client(Service(settings.model_copy(update={"history_max_mb": 1}), stores))
    with pytest.raises(TooLarge):
        small.enrolment.load_history(FILLER, b"x" * 1_000_001)


@pytest.mark.usefixtures("filler", "champion")
def test_retiring_and_erasing_want_a_reason_and_take_effect(client: Client) -> None:
    problem(client.request("POST", f"{BASE}/retire", json={}), 422)
    assert client.enrolment.retire(FILLER, reason="sold").state == "retired"
    with pytest.raises(Gone):
        client.enrolment.retire(FILLER, reason="sold")
    with pytest.raises(Gone):
        client.enrolment.refresh(FILLER)
    with pytest.raises(Gone, match="has been retired"):
        client.forecasts.get(FILLER)
    assert client.machines.list().machines == []
    assert len(client.machines.list(retired=True).machines) == 1
    assert client.enrolment.erase(FILLER, reason="asked").learned_by == []


@pytest.mark.usefixtures("filler")
def test_a_machine_that_was_never_learned_cannot_be_learned_again(client: Client) -> None:
    with pytest.raises(Conflict, match="enrolment goes on"):
        client.enrolment.refresh(FILLER)


@pytest.mark.usefixtures("champion")
def test_versions_are_listed_promoted_and_rolled_back(client: Client, stores: Stores) -> None:
    stores.versions.add_and_promote(small_model(seed=2), report={"summary": "two"}, at=NOW - timedelta(hours=1))
    models = client.models.list().models
    assert [(one.version, one.status) for one in models] == [("v2", "champion"), ("v1", "promoted")]
    detail = client.models.get("v2")
    assert (detail.report, detail.targets) == ({"summary": "two"}, [139, 26])
    problem(client.request("POST", "/v1/models/v1/promote", json={}), 422)
    with pytest.raises(NotFound):
        client.models.promote("v9", reason="x")
    with pytest.raises(Rejected):
        client.models.get("9")
    back = client.models.promote("v1", reason="two was worse")
    assert (back.version, back.status) == ("v1", "champion")
    with pytest.raises(Conflict):
        client.models.roll_back(reason="further")
    assert stores.audit.newest()[0].reason == "two was worse"


@pytest.mark.usefixtures("champion")
def test_a_version_is_changed_only_while_the_one_serves_that_was_seen(client: Client, stores: Stores) -> None:
    stores.versions.add_and_promote(small_model(seed=2), report={}, at=NOW - timedelta(hours=1))
    faster = "v2 serves by now, not v1: somebody was faster."
    with pytest.raises(Conflict, match=faster):
        client.models.roll_back(reason="worse", serving="v1")
    with pytest.raises(Conflict, match="v2 serves already"):
        client.models.promote("v2", reason="better", serving="v1")
    stores.versions.add_and_promote(small_model(seed=3), report={}, at=NOW - timedelta(minutes=30))
    with pytest.raises(Conflict, match="v3 serves by now, not v2"):
        client.models.promote("v1", reason="better", serving="v2")
    assert client.models.promote("v1", reason="better", serving="v3").status == "champion"
    problem(client.request("POST", "/v1/models/rollback", json={"reason": "x", "serving": "3"}), 422)


@pytest.mark.usefixtures("filler")
def test_a_job_is_told_once_in_a_list_and_as_it_happens(client: Client, stores: Stores) -> None:
    assert client.jobs.get(1).machine == "filler-1"
    assert [job.id for job in client.jobs.list().jobs] == [1]
    with pytest.raises(NotFound):
        client.jobs.get(2)
    with pytest.raises(NotFound):
        next(client.jobs.stream(2))
    with pytest.raises(Rejected):
        client.jobs.get(0)
    client.enrolment.retire(FILLER, reason="sold")
    assert stores.jobs.get(1).state.value == "cancelled"
    assert [job.state for job in client.jobs.stream(1)] == ["cancelled"]
    assert client.get("/v1/jobs/1/events").headers["content-type"].startswith("text/event-stream")


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
    assert client.machines.list().machines == []


def test_the_fleet_lists_machines_their_agents_and_who_knocks(
    client: Client, stores: Stores, filler: Machine
) -> None:
    connect_agent(stores, filler)
    (machine,) = client.machines.list().machines
    assert machine.agent == AgentView(
        online=True, last_seen_at=NOW, version="1", spooled=0, skew_ms=0, state_at=NOW
    )


def test_an_unknown_machine_is_not_found_and_the_answer_says_how_to_register_it(client: Client) -> None:
    for path in ("", "/alarms", "/forecast"):
        answer = problem(client.get(f"/v1/machines/padova/filler-9{path}"), 404)
        assert "alarmcast admin enrol padova/filler-9" in answer["detail"]


@pytest.mark.usefixtures("champion")
def test_a_forecast_over_rest_is_the_forecast_of_the_contract(
    client: Client, stores: Stores, filler: Machine
) -> None:
    raise_alarms(stores, filler, (NOW - timedelta(hours=40), 137), (NOW - timedelta(hours=1), 139))
    connect_agent(stores, filler)
    answer = client.get(f"{BASE}/forecast")
    forecast = Forecast.model_validate_json(answer.content)
    assert (forecast.site, forecast.machine, forecast.status.value) == ("padova", "filler-1", "ok")
    assert forecast.events_seen == 1
    assert client.get(f"{BASE}/forecast").content == answer.content


def test_without_a_model_a_forecast_is_unavailable_with_a_time_to_come_back(
    client: Client, stores: Stores, filler: Machine
) -> None:
    connect_agent(stores, filler)
    answer = client.get(f"{BASE}/forecast")
    assert "alarmcast admin enrol" in problem(answer, 503)["detail"]
    assert int(answer.headers["retry-after"]) > 0
    with pytest.raises(Unavailable):
        client.forecasts.fleet()


@pytest.mark.usefixtures("champion", "filler")
def test_a_past_moment_can_be_asked_about_and_the_future_cannot(client: Client) -> None:
    past = client.forecasts.get(FILLER, at=NOW - timedelta(hours=3))
    assert (past.as_of, past.hindsight) == (NOW - timedelta(hours=3), False)
    with pytest.raises(Rejected):
        client.forecasts.get(FILLER, at=NOW + timedelta(hours=3))
    with pytest.raises(Rejected):
        client.forecasts.get(FILLER, at=datetime(2000, 1, 1, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    "at", ["yesterday", "2026-11-16T00:00:00", "1999-12-31T00:00:00Z", "9999-01-01T00:00:00Z", "", "\x00"]
)
def test_a_moment_that_is_none_is_refused(shared_client: Client, at: str) -> None:
    assert problem(shared_client.get(f"{BASE}/forecast", at=at), 422)["errors"][0]["pointer"] == "query/at"


@pytest.mark.usefixtures("champion")
def test_the_fleets_forecasts_come_most_urgent_first(client: Client, stores: Stores, filler: Machine) -> None:
    connect_agent(stores, enrolled(stores.enrolments, MachineId("lyon", "filler-2")))
    enrolled(stores.enrolments, MachineId("lyon", "never-connected"))
    connect_agent(stores, filler)
    raise_alarms(stores, filler, (NOW - timedelta(hours=40), 137), (NOW - timedelta(hours=1), 139))
    forecasts = client.forecasts.fleet().forecasts
    assert {(one.site, one.machine) for one in forecasts} == {FILLER, ("lyon", "filler-2")}
    assert highest_value(forecasts[0].alarms) > highest_value(forecasts[1].alarms)


@pytest.mark.usefixtures("champion")
def test_history_comes_in_pages_that_a_cursor_joins(client: Client, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, *((NOW - timedelta(minutes=n), 139 if n % 2 else 4) for n in range(1, 26)))
    page = client.machines.alarms_page(FILLER, limit=10)
    assert (len(page.alarms), page.next is None) == (10, False)
    alarms = list(client.machines.alarms(FILLER, limit=10))
    assert [alarm.at for alarm in alarms] == [NOW - timedelta(minutes=n) for n in range(1, 26)]
    assert alarms[:10] == page.alarms
    assert alarms[0].text == "Film torn"
    assert alarms[1].text == "Alarm 4", "a code the catalogue does not know still has a name"


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
def test_a_wrong_question_about_history_is_refused(shared_client: Client, query: dict[str, Any]) -> None:
    problem(shared_client.get(f"{BASE}/alarms", **query), 422)


def test_a_catalogue_whose_forecast_fits_no_message_is_taken_with_a_warning(
    client: Client, service: Service
) -> None:
    rows = "".join(f"{code},Position not reached in time,medium,yes\n" for code in range(500))
    merged = client.catalogue.add("code,text,severity,target\n" + rows)
    assert (merged.new, merged.warning) == (500, service.health().warnings["catalogue_size"])


def test_without_a_broker_the_service_lives_but_is_not_ready_and_says_why(client: Client) -> None:
    assert client.health.live().status == "alive"
    assert client.request("HEAD", "/livez").status_code == 200
    assert client.get("/readyz").status_code == 503
    assert "broker" in client.health.ready().errors
    assert client.health.status().ready is False


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("DELETE", "/v1/machines", 405)])
def test_even_the_frameworks_own_errors_are_problems(
    shared_client: Client, method: str, path: str, status: int
) -> None:
    answer = shared_client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "query", "takes"),
    [
        ("/v1/jobs", "limt=5", "this path accepts the parameters limit."),
        ("/v1/jobs", "limit=5&Limit=6", "There is no query parameter 'Limit' here"),
        ("/v1/webhooks", "site=padova", "this path accepts no parameters."),
        (f"{BASE}/forecast", "when=now", "There is no query parameter 'when' here"),
        ("/v1/stream", "kind=alarm", "the parameters kinds, machine, site."),
        ("/v1/jobs", "%0Ax=1", "There is no query parameter '?x' here"),
    ],
)
def test_a_query_parameter_that_an_address_does_not_know_is_refused(
    shared_client: Client, path: str, query: str, takes: str
) -> None:
    refused = problem(shared_client.request("GET", f"{path}?{query}"), 422)
    assert takes in refused["detail"]
    assert refused["errors"][0]["pointer"].startswith("query/")


def test_probes_take_whatever_a_monitor_adds(shared_client: Client) -> None:
    assert shared_client.get("/livez", _="12345").status_code == 200
    assert shared_client.get("/metrics", x="1").status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/health.json", "/ready", "/status", "/api/v1/machines"])
def test_a_probe_by_another_name_is_told_what_there_is_also_if_it_brings_no_key(
    shared_service: Service, path: str
) -> None:
    with alarmcast.Client("http://test", transport=InProcess(shared_service.app)) as stranger:
        refused = problem(stranger.http.get(path), 404)
    assert "/livez" in refused["detail"]
    assert "/readyz" in refused["detail"]


def test_the_documentation_is_complete_and_its_references_hold(shared_client: Client) -> None:
    document = shared_client.get("/openapi.json").json()
    assert "Problem" in document["components"]["schemas"]
    text = str(document)
    for name in document["components"]["schemas"]:
        assert f"#/components/schemas/{name}" in text or name == "Problem"
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["description"], operation


def test_the_documentation_loads_nothing_from_elsewhere(shared_client: Client) -> None:
    page = shared_client.get("/docs").text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert loaded
    for address in loaded:
        assert address.startswith("/"), address
        assert shared_client.get(address).status_code == 200


def test_a_wrong_id_or_name_is_refused_in_words_and_not_by_a_pattern(client: Client) -> None:
    body = {"site": "Padova", "machine": "filler-1"}
    detail = problem(client.request("POST", "/v1/machines", json=body), 422)["detail"]
    assert detail.startswith("body/site: An id has 1 to 63 lower-case letters")
    odd = {"site": "padova", "machine": "filler-1", "name": "a\nb"}
    assert "no line ends" in problem(client.request("POST", "/v1/machines", json=odd), 422)["detail"]
