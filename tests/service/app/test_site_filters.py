"""Whoever acts for one site learns nothing of another, from no answer, file, stream or error."""

import json
from collections.abc import Iterator
from datetime import timedelta
from threading import Thread

import httpx
import pytest
import uvicorn

from alarmcast import Forbidden, NotFound
from service.app.http_server import Server, listen, url_of
from service.app.service import Service
from service.app.stores import Stores
from service.http.message import MACHINE, Message, Sentence
from service.http.permissions import PERMISSIONS, RouteScope
from service.machines.models import Machine
from service.messaging.bus import AlarmEvent, AlarmsRaised
from service.notifications.store import WebhookStore
from tests.conftest import wait_until
from tests.service.conftest import NOW, enrolled, new_stores, small_model, still_settings
from tests.support.api_client import Visitor, visitor
from tests.support.streams import Reader
from tests.support.two_sites import NAMES, SITES, seed
from wire.enums import Role
from wire.identity import MachineId
from wire.timestamps import to_us

QUESTIONS = [
    line.removeprefix("GET ")
    for line, rule in PERMISSIONS.items()
    if line.startswith("GET ")
    and rule.scope in (RouteScope.SITE, RouteScope.FILTERED)
    and line != "GET /v1/stream"
]
MORE = [
    "/v1/machines?retired=true", "/v1/shelves?active=false", "/v1/maintenance?active=true",
    "/v1/notifications?open=true",
    "/v1/alarm-metrics?by=site", "/v1/alarm-metrics?by=machine", "/v1/alarm-metrics/rows.csv?by=site",
    "/v1/scoreboard?by=machine",
    "/v1/quarantine?limit=1", "/v1/quarantine/3", "/v1/jobs?limit=1", "/readyz", "/v1/memory?version=v1",
]  # fmt: skip


@pytest.fixture
def fleet(service: Service, stores: Stores) -> dict[str, Machine]:
    return seed(service, stores)


@pytest.fixture(scope="module")
def shared_sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with both sites, for tests that only read."""
    settings = still_settings(tmp_path_factory.mktemp("sites") / "data", rate_per_second=0)
    with new_stores(settings) as stores:
        service = Service(settings, stores)
        seed(service, stores)
        service.forecasts.streams.close()  # or the streams would never end
        yield service


@pytest.fixture(scope="module")
def reader_of_padova(shared_sites: Service) -> Visitor:
    return visitor(shared_sites, Role.ADMIN, ["padova"])


@pytest.fixture
def padovas(service: Service, fleet: dict[str, Machine]) -> Visitor:
    assert set(fleet) == set(SITES)
    return visitor(service, Role.ADMIN, ["padova"])


@pytest.mark.parametrize("path", [*QUESTIONS, *MORE])
def test_no_answer_names_another_site(shared_sites: Service, reader_of_padova: Visitor, path: str) -> None:
    asked = path.format(**NAMES, site="padova")
    answer = reader_of_padova.ask("GET", asked)
    assert "lyon" not in answer.text.lower(), answer.text
    assert not [value for value in answer.headers.values() if "lyon" in value]
    everywhere = Visitor(shared_sites, shared_sites.key).ask("GET", asked)
    assert everywhere.status_code in (200, 404, 503), everywhere.text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/machines", "/v1/fleet", "/v1/silent", "/v1/alarm-metrics", "/v1/alarms.csv",
        "/v1/notifications", "/v1/answers", "/v1/answers.csv", "/v1/shelves",
        "/v1/maintenance", "/v1/jobs", "/v1/quarantine", "/v1/models/v1", "/v1/memory", "/v1/webhooks", "/v1/keys",
        "/v1/status",
    ],
)  # fmt: skip
def test_the_seeds_are_there_for_those_of_all_sites(
    shared_sites: Service, reader_of_padova: Visitor, path: str
) -> None:
    told = Visitor(shared_sites, shared_sites.key).ask("GET", path).text
    assert "lyon" in told
    assert "padova" in told
    assert "padova" in reader_of_padova.ask("GET", path).text


def test_machines_that_the_broker_keeps_out_are_counted_and_named_for_those_whose_they_are(
    service: Service, padovas: Visitor
) -> None:
    told = padovas.health.status().warnings["locked_out"]
    assert "rejects 1 machines: padova/filler-1." in told
    assert "locked_out" not in visitor(service, Role.VIEWER, ["graz"]).health.status().warnings
    assert "rejects 2 machines" in Visitor(service, service.key).health.status().warnings["locked_out"]


@pytest.mark.parametrize("site", ["4711", "0-8", "the", "alarm"])
def test_a_site_is_hidden_whatever_its_id_looks_like(service: Service, stores: Stores, site: str) -> None:
    other = Sentence(f"{MACHINE}: no alarm came in the 4 days of its exam.", f"{site}/17")
    report = {
        "summary": "2 machines",
        "memory": {"by_machine": {f"{site}/17": {"replayed": 9, "held_out": 1}}, "by_code": {"26": 12}},
        "left_out": {f"{site}/17": 3},
        "verdict": {
            "passed": True,
            "reasons": [],
            "undecided": [other.as_json()],
            "figures": [{"machine": f"{site}/17", "loss": 0.1}],
        },
    }
    stores.versions.add_and_promote(small_model(), report=report, at=NOW - timedelta(days=1))
    enrolled(stores.enrolments, MachineId(site, "17"))
    own = enrolled(stores.enrolments, MachineId("padova", "a"))
    job = stores.jobs.newest(machine=own.id)[0]
    stores.jobs.queue(job)
    claimed = stores.jobs.claim("worker", now=NOW, lease=timedelta(minutes=1))
    assert claimed
    stores.jobs.fail(claimed, Message((other,)), now=NOW, plant_now=NOW)
    padovas, everybody = visitor(service, Role.VIEWER, ["padova"]), Visitor(service, service.key)
    text = other.text_for(frozenset({"padova"}))
    for path in (
        "/v1/jobs",
        f"/v1/jobs/{claimed.id}",
        "/v1/machines",
        "/v1/machines/padova/a",
        "/v1/models/v1",
    ):
        assert text in padovas.ask("GET", path).text, path
        assert f"{site}/17: no alarm" in everybody.ask("GET", path).text, path
    for path in (
        "/v1/jobs", "/v1/models", "/v1/memory", "/v1/machines", "/v1/models/v1", "/v1/scoreboard", "/v1/fleet",
        "/v1/status", "/v1/machines/padova/a", f"/v1/jobs/{claimed.id}",
    ):  # fmt: skip
        answer = padovas.ask("GET", path).text
        assert f"{site}/" not in answer, path
        assert f'"{site}"' not in answer, path


def test_another_sites_machine_is_as_one_that_does_not_exist(reader_of_padova: Visitor) -> None:
    foreign = reader_of_padova.ask("GET", "/v1/machines/lyon/filler-1")
    missing = reader_of_padova.ask("GET", "/v1/machines/lyon/nothing")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.text.replace("filler-1", "nothing") == missing.text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/fleet", "/v1/alarm-metrics", "/v1/alarm-metrics/top.csv",
        "/v1/alarms.csv", "/v1/notifications", "/v1/maintenance",
        "/v1/scoreboard", "/v1/stream",
    ],
)  # fmt: skip
def test_asking_for_another_site_is_like_asking_for_one_that_does_not_exist(
    reader_of_padova: Visitor, path: str
) -> None:
    foreign, missing = (reader_of_padova.ask("GET", path, params={"site": site}) for site in ("lyon", "none"))
    assert foreign.status_code == missing.status_code

    def without_time(answer: httpx.Response) -> str:
        text = answer.text.replace("lyon", "none")
        return json.dumps(json.loads(text) | {"plant_time": 0, "since": 0, "until": 0, "rate": 0})

    if foreign.headers["content-type"].endswith("json"):
        assert without_time(foreign) == without_time(missing)


def test_what_belongs_to_another_site_cannot_be_touched_by_its_number(padovas: Visitor, stores: Stores) -> None:
    numbers = {one.site: one.id for one in WebhookStore(stores.database).all()}
    for method, path in (
        ("DELETE", f"/v1/webhooks/{numbers['lyon']}?reason=x"),
        ("POST", f"/v1/webhooks/{numbers['lyon']}/test"),
        ("GET", "/v1/quarantine/3"),
        ("POST", "/v1/quarantine/3/replay"),
        ("DELETE", "/v1/maintenance/2"),
        ("DELETE", "/v1/machines/padova/filler-1/shelves/2"),
        ("GET", "/v1/jobs/2"),
        ("GET", "/v1/jobs/2/events"),
        ("DELETE", "/v1/keys/2"),
    ):
        assert padovas.ask(method, path).status_code == 404, path
    replayed = padovas.ask("POST", "/v1/quarantine/replay", params={"reason": "not_json"}).json()
    assert replayed["refused"] == 2  # those of padova alone


def test_nothing_is_begun_at_another_site(padovas: Visitor) -> None:
    with pytest.raises(Forbidden, match="no access to the site lyon"):
        padovas.enrolment.enrol("lyon/filler-9")
    with pytest.raises(Forbidden, match="all sites"):
        padovas.enrolment.enrol("padova/filler-9", catalogue="code,text,severity,target\n1,x,low,no\n")
    with pytest.raises(NotFound):
        padovas.maintenance.create("lyon", until=NOW, reason="oil")
    with pytest.raises(NotFound):
        padovas.webhooks.add("http://127.0.0.1/x", site="lyon")
    with pytest.raises(Forbidden, match="all sites"):
        padovas.webhooks.add("http://127.0.0.1/x")
    with pytest.raises(Forbidden):
        padovas.users.add("eve", sites=["lyon"])
    padovas.enrolment.enrol("padova/filler-9")


def test_an_idempotency_key_does_not_tell_what_it_was_used_for(service: Service, padovas: Visitor) -> None:
    Visitor(service, service.key).enrolment.enrol("lyon/filler-7", idempotency_key="same")
    answer = padovas.ask(
        "POST", "/v1/machines", json={"site": "padova", "machine": "x"}, headers={"Idempotency-Key": "same"}
    )
    assert answer.status_code == 409
    assert "lyon" not in answer.text


@pytest.fixture
def address(service: Service) -> Iterator[str]:
    with listen("127.0.0.1", 0) as listener:
        server = Server(uvicorn.Config(service.app, log_config=None), ending=service.forecasts.streams.close)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started, "the server has started")
        yield url_of(listener)
        server.should_exit = True
        thread.join(timeout=30)


def test_a_stream_tells_of_ones_own_sites_alone(
    service: Service, fleet: dict[str, Machine], padovas: Visitor, address: str
) -> None:
    key = padovas.http.headers["authorization"].removeprefix("Bearer ")
    own, all_of_it = (
        Reader(f"{address}/v1/stream", key).start(),
        Reader(f"{address}/v1/stream", service.key).start(),
    )
    wait_until(lambda: service.forecasts.streams.count == 2, "both listen")
    alarms = tuple(AlarmEvent(machine.id, to_us(NOW), 139) for machine in fleet.values())
    service.bus.publish(AlarmsRaised(alarms))
    wait_until(lambda: len(all_of_it.of("alarm")) == 2, "both alarms were told")
    wait_until(lambda: own.of("alarm"), "the own alarm was told")
    assert {one["site"] for _, one in own.told} == {"padova"}
    assert {one["site"] for _, one in all_of_it.told} == set(SITES)


def test_a_stream_ends_when_its_key_is_revoked(service: Service, padovas: Visitor, address: str) -> None:
    service.forecasts.streams.ping_interval_s = 0.05
    key = padovas.http.headers["authorization"].removeprefix("Bearer ")
    reader = Reader(f"{address}/v1/stream", key).start()
    wait_until(lambda: service.forecasts.streams.count == 1, "the stream is open")
    (own,) = [one for one in service.auth.users.keys.all() if f"_{one.prefix}_" in key]
    assert padovas.ask("DELETE", f"/v1/keys/{own.id}").status_code == 204
    wait_until(lambda: reader.ended, "the stream has ended in order")
    wait_until(lambda: service.forecasts.streams.count == 0, "its place is free again")


def test_machines_of_a_retired_fleet_are_hidden_too(service: Service, stores: Stores, padovas: Visitor) -> None:
    machine = stores.machines.get(MachineId("lyon", "filler-1"))
    stores.enrolments.retire(machine, who="test", at=NOW, plant_at=NOW, reason="sold")
    assert "lyon" not in padovas.ask("GET", "/v1/machines?retired=true").text
    assert "lyon" not in padovas.ask("GET", "/v1/fleet").text
    assert "lyon" in Visitor(service, service.key).ask("GET", "/v1/machines?retired=true").text
