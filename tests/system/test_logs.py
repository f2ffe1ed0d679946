"""What a service and its agents write down while people and programs hand them secrets."""

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import paho.mqtt.publish
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.conftest import free_port, wait_until
from tests.support.commands import alarmcast
from tests.support.webhook_receiver import Receiver
from tests.system.conftest import Plant, write_alarms
from wire.enums import Severity

SECRETS = {
    name: f"{name}-{uuid4().hex}"
    for name in ("broker", "bearer", "basic", "cookie", "query", "typed", "database", "hook", "socket")
}


def entries(words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in words.splitlines()]


def knock(plant: Plant) -> None:
    """Sign in in every way that somebody might try, rightly or wrongly."""
    ask = plant.api.http.request
    ask("POST", "/v1/session", json={"user": "anna", "password": SECRETS["typed"]})
    ask("POST", "/v1/machines", json={"site": "padova", "password": SECRETS["typed"]})
    ask("GET", "/v1/status", headers={"Authorization": f"Bearer {SECRETS['bearer']}"})
    ask("GET", "/v1/status", headers={"Authorization": f"Basic {SECRETS['basic']}"})
    ask("GET", "/v1/status", headers={"Cookie": f"session={SECRETS['cookie']}"})
    ask("GET", "/v1/machines", params={"token": SECRETS["query"], "key": SECRETS["query"]})
    ask("GET", "/health", headers={"Cookie": f"session={SECRETS['cookie']}"})
    address = plant.address.replace("http", "ws") + "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, additional_headers={"Cookie": f"session={SECRETS['socket']}"})
    assert refused.value.response.status_code == 403


def forge(plant: Plant) -> None:
    """Try to write a line of the log."""
    line = '{"timestamp":"2026-11-16T08:00:00Z","level":"info","event":"FORGED"}'
    plant.api.http.get(f"/v1/x%0A{line}%0A")
    plant.api.http.post(f"/v1/x%0D%0A{line}%0A", headers={"X-Request-Id": line, "User-Agent": line})
    for topic in ("alarmcast/v1/padova/filler-1/events", "alarmcast/v1/a b/FORGED\u2028/events"):
        paho.mqtt.publish.single(topic, f"x\n{line}\n", qos=1, hostname="127.0.0.1", port=plant.broker.port)


def test_no_secret_and_nobody_elses_line_is_in_the_log_of_a_service_that_tells_all(
    plant: Plant, tmp_path: Path
) -> None:
    receiver = Receiver()
    plant.service.environment = {
        "ALARMCAST_LOG_LEVEL": "debug",
        "ALARMCAST_WEBHOOK_NETWORKS": "127.0.0.0/8",
        "ALARMCAST_BROKER_USERNAME": "alarmcast",
        "ALARMCAST_BROKER_PASSWORD": SECRETS["broker"],
    }
    plant.start_service()
    plant.api.enrolment.enrol("padova/filler-1", name="Filler")
    hook = plant.api.webhooks.add(receiver.url(f"/{SECRETS['hook']}"), severity=Severity.LOW)
    assert plant.api.webhooks.test(hook.id).delivered
    knock(plant)
    forge(plant)
    alarms = tmp_path / "alarms.jsonl"
    write_alarms(alarms, 1, 20)
    agent = plant.agent("padova/filler-1", alarms, broker_username="m", broker_password=SECRETS["broker"])
    agent.start()
    wait_until(lambda: plant.spooled("padova/filler-1") == 0, "all alarms are acked")
    plant.broker.kill()
    wait_until(lambda: not plant.is_ready(), "the broker's end is noticed")
    plant.broker.start()
    wait_until(plant.is_ready, "all is well again")
    agent.stop()
    plant.service.stop()
    receiver.close()
    words = plant.service.words()
    for name, secret in SECRETS.items():
        assert secret not in words + agent.words(), name
    assert hook.secret not in words
    told = entries(words)
    assert all({"timestamp", "level", "event"} <= line.keys() for line in told)
    assert "FORGED" not in {line["event"] for line in told}
    orders = [line for line in told if line["event"] == "POST /v1/machines"]
    assert {line["status"] for line in orders} == {202, 422}
    assert len({line["request_id"] for line in orders}) == len(orders)
    assert all(line.isprintable() and line[:4].isdigit() for line in agent.words().splitlines())


def test_a_database_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://alarmcast:{SECRETS['database']}@127.0.0.1:{free_port()}/alarmcast"
    done = alarmcast("serve", "--data-dir", tmp_path, "--port", 0, ALARMCAST_DATABASE_URL=url)
    assert done.returncode != 0
    assert SECRETS["database"] not in done.stdout + done.stderr
    assert done.stderr.startswith("alarmcast: The database does not answer")


def test_a_log_that_is_wished_as_text_is_text(plant: Plant) -> None:
    plant.service.environment = {"ALARMCAST_LOG_FORMAT": "text"}
    plant.start_service()
    plant.service.stop()
    assert " info    Alarmcast listens on http://127.0.0.1:" in plant.service.words()
    assert sys.executable not in plant.service.words()
