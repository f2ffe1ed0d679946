"""What a process does by its roles, and that SQLite cannot be shared out."""

import os
import time

import httpx
import pytest

from alarmcast import InProcess
from service.app.configuration import load_settings
from service.app.service import Service
from service.app.stores import open_stores
from service.database.engine import Database
from service.errors import InputRejected
from service.settings import Settings
from tests.conftest import wait_until
from wire.enums import ProcessRole
from wire.mqtt import MqttVersion


def shared(settings: Settings, database: Database, roles: str) -> Settings:
    return settings.model_copy(update={"database_url": database.url, "roles": roles})


def asking(service: Service, headers: dict[str, str]) -> httpx.Client:
    return httpx.Client(base_url="http://here", headers=headers, transport=InProcess(service.app))


def test_roles_are_read_and_a_wrong_one_is_told_in_a_sentence() -> None:
    url = "postgresql+psycopg://alarmcast@127.0.0.1/alarmcast"
    found = load_settings(roles="worker, api", database_url=url).process_roles
    assert found == {ProcessRole.WORKER, ProcessRole.API}
    assert load_settings().process_roles == frozenset(ProcessRole)
    with pytest.raises(InputRejected, match=r"'learner' is not a role; use one or more of api, ingest, worker"):
        load_settings(roles="learner", database_url=url)


@pytest.mark.parametrize("url", [None, "sqlite:////var/lib/alarmcast/alarmcast.sqlite3"])
def test_on_sqlite_one_process_does_it_all(url: str | None) -> None:
    assert load_settings(roles="ingest,api,worker", database_url=url)
    with pytest.raises(InputRejected, match=r"SQLite needs all roles.*alarmcast admin copy-database"):
        load_settings(roles="ingest", database_url=url)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("version", list(MqttVersion))
def test_several_that_ingest_never_come_to_the_broker_by_one_name(
    settings: Settings, database: Database, version: MqttVersion
) -> None:
    chosen = shared(settings, database, "ingest").model_copy(update={"broker_mqtt_version": version})
    with open_stores(chosen) as stores:
        names = {Service(chosen, stores).ingest.mqtt.client_id for _ in range(2)}
    assert len(names) == 2


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("roles", ["ingest", "worker", "ingest,worker"])
def test_who_does_not_answer_requests_answers_how_it_is_and_nothing_else(
    settings: Settings, database: Database, roles: str
) -> None:
    chosen = shared(settings, database, roles)
    with open_stores(chosen) as stores:
        service = Service(chosen, stores)
        client = asking(service, {"Authorization": f"Bearer {service.key}"})
        answers = {path: client.get(path).status_code for path in ("/livez", "/v1/status", "/metrics")}
        assert answers == dict.fromkeys(answers, httpx.codes.OK)
        assert client.get("/v1/machines").status_code == httpx.codes.NOT_FOUND
        assert asking(service, {}).get("/metrics").status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("roles", "parts"),
    [
        ("api", {"forecasts", "maintenance", "leases", "heartbeat", "changes", "database", "model"}),
        (
            "ingest",
            {"broker", "broker_thread", "ingest", "maintenance", "leases", "heartbeat", "changes", "database"},
        ),
    ],
)
def test_a_process_is_judged_by_what_it_does(
    settings: Settings, database: Database, roles: str, parts: set[str]
) -> None:
    chosen = shared(settings, database, roles)
    with open_stores(chosen) as stores:
        assert set(Service(chosen, stores).health().parts) == parts


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("roles", ["api", "ingest", "worker"])
def test_every_host_sweeps_away_what_was_left_for_a_day_by_who_was_killed(
    settings: Settings, database: Database, roles: str
) -> None:
    chosen = shared(settings, database, roles)
    places = [chosen.data_dir / name for name in ("learning/job-1-a", "uploads/history-a")]
    with open_stores(chosen) as stores:
        service = Service(chosen, stores)
        for left in (*places, *(place.with_name(f"{place.name}-young") for place in places)):
            left.parent.mkdir(exist_ok=True)
            left.mkdir() if "job" in left.name else left.touch()
        for place in places:
            os.utime(place, times=(0, time.time() - 25 * 3600))
        service.maintenance.start()
        wait_until(lambda: not any(place.exists() for place in places), "what is old is gone")
        service.maintenance.stop()
    assert all(place.with_name(f"{place.name}-young").exists() for place in places)
