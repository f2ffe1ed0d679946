"""What Prometheus reads is true, complete and few, on a real store with real traffic."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import alarmcast
from alarmcast import InProcess
from forecasting.forecaster import Forecaster
from service import __version__
from service.app.service import Service
from service.app.stores import Stores
from service.database.backup import back_up
from service.errors import InputRejected
from service.http.request_metrics import RequestMiddleware
from service.machines.events import EventWrite, QuarantineRow
from service.machines.models import Agent, Machine
from service.messaging.mqtt_client import MqttMessage
from tests.conftest import require, wait_until
from tests.service.conftest import EPOCH, NOW, connect_agent, enrolled, raise_alarms
from tests.support.ingest import RecordingLink
from wire.identity import MachineId
from wire.timestamps import isoformat, to_us

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Scrape:
    """One look at the metrics."""

    def __init__(self, service: Service) -> None:
        self.text = service.metrics.text().decode()
        self.samples = samples(self.text)

    def __call__(self, metric: str, /, **labels: str) -> float:
        return self.samples[f"alarmcast_{metric}", frozenset(labels.items())]

    def has(self, metric: str) -> bool:
        return any(name == f"alarmcast_{metric}" for name, _ in self.samples)


@pytest.fixture
def web(service: Service) -> Iterator[alarmcast.Client]:
    """A client outside the door at which requests are counted."""
    door = InProcess(RequestMiddleware(service.app, service.http_metrics), raise_defects=False)
    with alarmcast.Client("http://test", key=service.key, transport=door) as client:
        yield client


def test_events_are_told_apart_by_what_became_of_them(service: Service, filler: Machine) -> None:
    assert filler
    ages = [timedelta(seconds=2), timedelta(seconds=40), timedelta(hours=3), timedelta(days=500)]
    events = [f'{{"seq":{n},"code":139,"at":"{isoformat(NOW - age)}"}}' for n, age in enumerate(ages, start=1)]
    body = f'{{"epoch":"{EPOCH}","events":[{",".join(events)},{{"seq":9,"code":"x","at":"no"}}]}}'.encode()
    service.ingest.ingester.start(RecordingLink())  # type: ignore[arg-type]
    topics = ["padova/filler-1", "padova/filler-1", "nowhere/stranger"]
    for mid, machine in enumerate(topics, start=1):
        topic = f"alarmcast/v1/{machine}/events"
        service.ingest.ingester.on_message(MqttMessage(0, mid, 1, topic, body, retained=False))
        wait_until(lambda: not service.ingest.ingester.waiting[0], "the message is taken")
    wait_until(lambda: service.ingest.ingester.counts["unregistered"] == 1, "all is committed")
    service.ingest.ingester.stop()
    told = Scrape(service)
    results = ("stored", "late", "flagged", "duplicate", "quarantined")
    assert [told("events_total", result=result) for result in results] == [2, 1, 1, 4, 2]
    assert told("messages_not_stored_total", reason="unregistered") == 1
    assert (told("ingest_lag_seconds_count"), told("backfilled_events_total")) == (2, 1)
    assert told("ingest_lag_seconds_bucket", le="30.0") == 1
    assert told("ingest_lag_seconds_bucket", le="3600.0") == 2
    assert told("ingest_lag_seconds_sum") == pytest.approx(2 + 40, abs=30)
    reasons = {name for name, _ in told.samples if name == "alarmcast_quarantined_total"}
    assert reasons
    assert sum(value for (name, _), value in told.samples.items() if name == "alarmcast_quarantined_total") == 2
    assert told.has("quarantine_items")


def test_agents_machines_and_what_waits_with_them_are_counted(service: Service, stores: Stores) -> None:
    rows = [enrolled(stores.enrolments, MachineId("padova", f"m{n}")).row_id for n in range(4)]
    agents = {
        rows[0]: Agent(online=True, last_seen_at=NOW, version="1", epoch=uuid4(), spooled=3, skew_ms=40),
        rows[1]: Agent(online=True, last_seen_at=NOW, version="1", epoch=uuid4(), spooled=90, skew_ms=-700),
        rows[2]: Agent(online=False, last_seen_at=NOW, version="1", epoch=uuid4(), spooled=7, skew_ms=None),
    }
    stores.events.commit(EventWrite(to_us(NOW), agent_states=agents))
    told = Scrape(service)
    statuses = [told("agents", status=word) for word in ("online", "stale", "offline", "never")]
    assert statuses == [2, 0, 1, 1]
    assert (told("spooled_events"), told("spooled_events_max")) == (100, 90)
    assert told("agent_clock_skew_seconds") == pytest.approx(0.7)
    assert sum(told("machines", state=state) for state in ("registered", "collecting")) == 4
    assert told("training_jobs", state="collecting") == 4


def test_forecasts_and_the_model_that_makes_them_are_told(
    service: Service, stores: Stores, filler: Machine, champion: Forecaster
) -> None:
    assert champion
    before = Scrape(service)
    assert before("model_info", version="v1") == 1
    assert before("forecast_duration_seconds_count") == 0
    raise_alarms(stores, filler, (NOW - timedelta(days=2), 139), (NOW - timedelta(minutes=9), 26))
    connect_agent(stores, filler)
    service.forecasts.cache.fresh_for([filler])
    told = Scrape(service)
    assert told("forecast_duration_seconds_count") == 1
    assert told("forecasts", status="ok") == 1


def test_without_a_model_none_is_named_and_nothing_is_ill(service: Service) -> None:
    told = Scrape(service)
    assert not told.has("model_info")
    assert told("component_error", component="model") == 0


def test_every_part_says_how_it_is_also_while_it_is_well(service: Service) -> None:
    told = Scrape(service)
    parts = {dict(labels)["component"] for name, labels in told.samples if name == "alarmcast_component_error"}
    assert parts >= {"broker", "ingest", "forecasts", "learning", "database", "model", "deliveries"}
    assert (
        told("component_error", component="database"),
        told("component_error", component="broker"),
        told("ready"),
    ) == (0, 1, 0)


def test_while_the_database_is_away_the_rest_is_told(service: Service, stores: Stores) -> None:
    stores.database.close()
    told = Scrape(service)
    assert told("component_error", component="database") == 1
    unknown = (
        "agents",
        "forecasts",
        "training_jobs",
        "database_size_bytes",
        "webhook_deliveries_pending",
        "quarantine_items",
    )
    assert not any(told.has(name) for name in unknown)
    assert told("events_total", result="stored") == 0
    assert told("disk_free_bytes") > 0


def test_a_backup_is_known_from_when_it_was_made(service: Service, stores: Stores, tmp_path: Path) -> None:
    assert stores
    assert Scrape(service)("last_backup_timestamp_seconds") == 0
    made = back_up(service.settings.data_dir, tmp_path / "backup")
    assert made
    assert Scrape(service)("last_backup_timestamp_seconds") > 1.7e9
    assert (Scrape(service)("backup_failed"), Scrape(service)("backup_max_age_seconds")) == (0, 48 * 3600)
    with pytest.raises(InputRejected):
        back_up(service.settings.data_dir, tmp_path / "backup")
    assert Scrape(service)("backup_failed") == 1


def test_requests_are_counted_by_route_and_never_by_what_somebody_typed(
    service: Service, web: alarmcast.Client, filler: Machine
) -> None:
    assert filler
    ask = web.http.request
    for path in ("/v1/machines/padova/filler-1", "/v1/machines/padova/nobody", "/v1/a%0Ab", "/secret-path"):
        ask("GET", path)
    ask("POST", "/v1/machines", json={"wrong": True})
    ask("BREW", "/v1/machines")
    told = Scrape(service)
    route = "/v1/machines/{site}/{machine}"
    assert told("http_requests_total", method="GET", route=route, status="2xx") == 1
    assert told("http_requests_total", method="GET", route=route, status="4xx") == 1
    assert told("http_requests_total", method="GET", route="other", status="4xx") == 2
    assert told("http_requests_total", method="POST", route="/v1/machines", status="4xx") == 1
    assert told("http_requests_total", method="other", route="/v1/machines", status="4xx") == 1
    assert told("http_request_duration_seconds_count", method="GET", route=route) == 2
    assert "secret-path" not in told.text
    assert "BREW" not in told.text


def test_a_defect_is_counted_as_one(service: Service, web: alarmcast.Client) -> None:
    @service.app.get("/broken")
    def broken() -> None:
        raise ZeroDivisionError

    assert web.http.get("/broken").status_code == 500
    assert Scrape(service)("http_requests_total", method="GET", route="/broken", status="5xx") == 1


def test_no_label_is_a_machine_or_a_code(service: Service, stores: Stores, filler: Machine) -> None:
    raise_alarms(stores, filler, (NOW - timedelta(minutes=9), 137))
    connect_agent(stores, filler)
    items = [QuarantineRow(filler.row_id, "alarmcast/v1/padova/filler-1/events", "bad_event", "d", b"x")]
    stores.events.commit(EventWrite(to_us(NOW), quarantined=items))
    told = Scrape(service)
    names = {label for _, labels in told.samples for label, _ in labels}
    assert not names & {"site", "machine", "code"}
    assert not re.search(r"filler|padova|137", told.text)


def test_the_endpoint_answers_what_prometheus_reads(web: alarmcast.Client) -> None:
    answer = web.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(answer.text)
    assert any(name == "alarmcast_build_info" and ("version", __version__) in labels for name, labels in found)
    assert any(name == "process_resident_memory_bytes" for name, _ in found)


def test_prometheus_own_checker_has_nothing_to_object(service: Service, web: alarmcast.Client) -> None:
    require(shutil.which("promtool"), "promtool (Debian's package prometheus)")
    web.http.get("/readyz")
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=service.metrics.text(), capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_an_answer_names_its_request_by_the_clients_id_if_that_is_one(web: alarmcast.Client) -> None:
    def named(value: str | None) -> str:
        headers = {} if value is None else {"X-Request-Id": value}
        return str(web.http.get("/livez", headers=headers).headers["x-request-id"])

    assert named("order-7:a.B_c") == "order-7:a.B_c"
    for unfit in (None, "", "a b", "x" * 65, '{"a":1}', "-leading"):
        assert re.fullmatch(r"[0-9a-f]{16}", named(unfit))
    assert named(None) != named(None)


def test_a_problem_too_has_its_request_id(web: alarmcast.Client) -> None:
    answer: httpx.Response = web.http.get("/v1/machines/padova/nobody", headers={"X-Request-Id": "mine"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (404, "mine")
