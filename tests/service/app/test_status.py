"""Health in figures, over REST on a real store."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from service import __version__
from service.app.service import Service
from service.app.stores import Stores
from service.database.migrations import versions
from service.machines.events import EventWrite, QuarantineRow
from service.machines.models import Agent, Machine
from service.messaging.mqtt_client import MqttMessage
from service.settings import Settings
from tests.conftest import wait_until
from tests.service.conftest import EPOCH, NOW, enrolled
from tests.support.api_client import Client
from tests.support.ingest import RecordingLink
from wire.identity import MachineId
from wire.rest.health import Status
from wire.state import Note
from wire.timestamps import isoformat, to_us

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def status(service: Service) -> Status:
    answer = Client(service).get("/v1/status")
    assert answer.status_code == 200
    return Status.model_validate_json(answer.content)


def agent(*, online: bool = True, spooled: int | None = 0, skew: int | None = 0, minutes: int = 0) -> Agent:
    return Agent(online, NOW - timedelta(minutes=minutes), "1", uuid4(), spooled, skew)


def test_agents_are_summed_up_and_the_worst_are_named(service: Service, stores: Stores) -> None:
    rows = [enrolled(stores.enrolments, MachineId("padova", f"m{n}")).row_id for n in range(5)]
    told = {
        rows[0]: agent(spooled=3, skew=40),
        rows[1]: agent(spooled=90, skew=-700),
        rows[2]: agent(online=False, spooled=7),
        rows[3]: agent(minutes=16, spooled=None, skew=None),
    }
    stores.events.commit(EventWrite(to_us(NOW), agent_states=told))
    agents = status(service).agents
    assert agents
    assert (agents.machines, agents.online, agents.stale, agents.offline, agents.never) == (5, 2, 1, 1, 1)
    assert agents.spooled == 100
    assert agents.most_spooled
    assert (agents.most_spooled.machine, agents.most_spooled.spooled) == ("m1", 90)
    assert agents.worst_skew
    assert (agents.worst_skew.machine, agents.worst_skew.skew_ms) == ("m1", -700)


def test_rows_that_agents_cannot_read_are_counted_and_warned_of_for_a_day(
    service: Service, stores: Stores
) -> None:
    rows = [enrolled(stores.enrolments, MachineId("padova", f"m{n}")).row_id for n in range(3)]
    new, old = (Note(text="byte 7: <b>'16.11.2026'</b>", at=NOW - age) for age in (HOUR, 25 * HOUR))
    cut = Note(text="The log was cut.", at=NOW)
    told = {
        rows[0]: replace(agent(), skipped=57, last_skipped=new),
        rows[1]: replace(agent(), skipped=3, last_skipped=old),
        rows[2]: replace(agent(), warning=cut),
    }
    stores.events.commit(EventWrite(to_us(NOW), agent_states=told))
    found = status(service)
    assert found.agents
    assert found.agents.skipped == 60
    assert "1 machine has rows" in found.warnings["unreadable_rows"]
    assert "padova/m0 (57 rows, last: byte 7: <b>'16.11.2026'</b>)" in found.warnings["unreadable_rows"]
    assert found.warnings["agents"] == "Agents report: padova/m2 (The log was cut)."
    views = {one.machine: one.agent for one in Client(service).machines.list().machines if one.agent}
    assert (views["m0"].skipped, views["m0"].last_skipped) == (57, new)
    assert (views["m1"].skipped, views["m2"].warning) == (3, cut)


def test_an_alarm_keeps_what_the_state_before_it_reported(
    service: Service, stores: Stores, filler: Machine
) -> None:
    note = Note(text="byte 7: wrong", at=NOW)
    told = replace(agent(minutes=9), state_at=NOW - 9 * MINUTE, skipped=2, last_skipped=note, spooled=4)
    stores.events.commit(EventWrite(to_us(NOW), agent_states={filler.row_id: told}))
    stores.events.commit(EventWrite(to_us(NOW), seen_machines={filler.row_id}))
    view = Client(service).machines.get(f"{filler.id}").agent
    assert view
    assert (view.last_seen_at, view.state_at, view.spooled) == (NOW, NOW - 9 * MINUTE, 4)
    assert (view.skipped, view.last_skipped) == (2, note)


def test_without_machines_there_is_no_worst(service: Service) -> None:
    agents = status(service).agents
    assert agents
    assert (agents.machines, agents.spooled, agents.most_spooled, agents.worst_skew) == (0, 0, None, None)


def test_the_quarantine_is_counted_by_reason(service: Service, stores: Stores) -> None:
    items = [QuarantineRow(None, "t", reason, "d", str(n).encode()) for n, reason in enumerate(("a", "b", "b"))]
    stores.events.commit(EventWrite(to_us(NOW), quarantined=items))
    found = status(service).quarantine
    assert found
    assert (found.items, [(one.reason, one.items) for one in found.reasons]) == (3, [("b", 2), ("a", 1)])
    assert found.reasons[0].last_at == NOW


def test_database_disk_broker_and_versions_are_told_without_the_password(
    settings: Settings, stores: Stores, filler: Machine
) -> None:
    assert filler
    secret = settings.model_copy(update={"broker_username": "u", "broker_password": "hush", "broker_host": "mq"})
    service = Service(secret, stores)
    answer = Client(service).get("/v1/status")
    assert "hush" not in answer.text
    found = status(service)
    assert found.database
    newest = max(file.name for file in Path(versions.__file__).parent.glob("0*.py"))[:4]
    assert (found.database.kind, found.database.schema_revision) == ("sqlite", newest)
    assert found.database.size_bytes > 10_000
    assert found.disk
    assert 0 < found.disk.free_bytes <= found.disk.total_bytes
    assert (found.broker.address, found.broker.connected, found.broker.mqtt_version) == ("mq:1883", False, "5")
    assert found.broker.error
    assert found.broker.dropped is None
    assert found.versions["alarmcast"] == __version__
    assert {"python", "sqlite", "mqtt", "paho"} <= found.versions.keys()
    assert found.jobs
    assert (found.jobs.collecting, found.jobs.queued, found.jobs.running) == (1, 0, 0)
    assert found.streams == 0
    assert found.uptime_seconds >= 0
    assert found.counts is not None


def test_what_comes_over_the_broker_is_counted_with_its_lag_and_what_is_resent_is_not(
    service: Service, filler: Machine
) -> None:
    assert filler
    at = isoformat(NOW - timedelta(seconds=90))
    events = ",".join(f'{{"seq":{seq},"code":139,"at":"{at}"}}' for seq in range(1, 61))
    body = f'{{"epoch":"{EPOCH}","events":[{events}]}}'.encode()
    ingester = service.ingest.ingester
    assert status(service).ingest.lag_p50_seconds is None
    ingester.start(RecordingLink())  # type: ignore[arg-type]
    for mid in (1, 2):
        ingester.on_message(MqttMessage(0, mid, 1, "alarmcast/v1/padova/filler-1/events", body, retained=False))
        wait_until(lambda: sum(ingester.counts.values()) == 60 * mid, "the message is committed")  # noqa: B023
    ingester.stop()
    lag = ingester.pace.lag()
    assert lag.events == 60
    assert lag.median == pytest.approx(90, abs=5)
    assert 0 < ingester.pace.rate(60) <= 60


def test_while_the_database_is_away_status_answers_with_what_it_knows(service: Service, stores: Stores) -> None:
    stores.database.close()
    found = status(service)
    assert not found.ready
    assert (found.database, found.agents, found.quarantine, found.jobs) == (None, None, None, None)
    assert found.broker.address


def test_a_broker_of_another_installation_is_warned_of(service: Service) -> None:
    service.broker_access.credentials.foreign = "The broker belongs to another installation."
    assert status(service).warnings["broker_foreign"] == service.broker_access.credentials.foreign
