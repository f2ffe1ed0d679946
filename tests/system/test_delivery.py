"""Delivery between real processes: whatever is killed, every alarm is stored exactly once."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from edge_agent.simulator.catalogue import catalogue_csv
from edge_agent.simulator.log_file import write_log
from tests.conftest import wait_until
from tests.system.conftest import Plant, write_alarms
from wire.forecasts import Forecast, ForecastStatus
from wire.topics import Channel, every_machine

MACHINE = "padova/filler-1"


def codes(plant: Plant) -> list[int]:
    return [code for _, code in plant.stored(MACHINE)]


def everything_is_stored_once(plant: Plant, count: int) -> None:
    wait_until(lambda: len(plant.stored(MACHINE)) >= count, f"{count} events are stored", 60)
    wait_until(lambda: plant.spooled(MACHINE) == 0, "the spool is empty", 60)
    assert codes(plant) == list(range(count))


def test_alarms_travel_from_a_log_file_to_rest(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    plant.admin("enrol", MACHINE, "--time-zone", "Europe/Rome")
    plant.start_service()
    wait_until(plant.is_ready, "the service is ready")
    plant.agent(MACHINE, log).start()
    write_alarms(log, 0, 7)
    everything_is_stored_once(plant, 7)
    assert {alarm.code for alarm in plant.api.machines.alarms(MACHINE)} == set(range(7))
    agent = plant.api.machines.get(MACHINE).agent
    assert agent
    assert agent.online


def test_with_the_broker_away_both_sides_wait_and_recover_by_themselves(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    plant.broker.kill()
    plant.start_service()
    plant.enrol(MACHINE)
    plant.agent(MACHINE, log).start()
    write_alarms(log, 0, 50)
    wait_until(lambda: plant.spooled(MACHINE) == 50, "all is spooled")
    readiness = plant.api.health.ready()
    assert not readiness.ready
    assert str(plant.broker.port) in readiness.errors["broker"]
    plant.broker.start()
    everything_is_stored_once(plant, 50)
    wait_until(plant.is_ready, "the service is ready")


def test_a_machine_that_is_not_registered_is_listed_and_loses_nothing(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    plant.start_service()
    plant.agent(MACHINE, log).start()
    write_alarms(log, 0, 20)

    def is_listed() -> bool:
        return [knock.machine for knock in plant.api.machines.list().unregistered] == ["filler-1"]

    wait_until(is_listed, "the machine is listed as unregistered")
    wait_until(lambda: plant.spooled(MACHINE) == 20, "all is spooled")
    added = plant.admin("enrol", MACHINE)
    assert added.returncode == 0
    assert added.stdout.startswith(f"{MACHINE} is enrolled; job 1 is collecting.\n")
    everything_is_stored_once(plant, 20)
    assert plant.api.machines.list().unregistered == []


def test_events_lost_on_the_way_are_sent_again_though_newer_ones_are_acked(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    plant.start_service()
    plant.agent(MACHINE, log).start()
    write_alarms(log, 0, 20)
    wait_until(lambda: plant.api.machines.list().unregistered, "the machine is listed; its first events are gone")
    plant.enrol(MACHINE)
    written = 20

    def the_old_ones_are_stored_while_new_ones_keep_coming() -> bool:
        nonlocal written
        write_alarms(log, written, 1)
        written += 1
        time.sleep(0.5)
        return set(range(20)) <= set(codes(plant))

    wait_until(the_old_ones_are_stored_while_new_ones_keep_coming, "the first events are stored", 60)
    everything_is_stored_once(plant, written)


def test_agents_of_lookalike_names_do_not_drive_each_other_out(plant: Plant, tmp_path: Path) -> None:
    plant.start_service()
    agents, names, log = [], ("x-y/z", "x/y-z"), tmp_path / "alarms.jsonl"
    for machine in names:
        plant.enrol(machine)
        agents.append(plant.agent(machine, log))
        agents[-1].start()
    wait_until(lambda: all("connected to" in agent.words() for agent in agents), "both are connected")
    write_alarms(log, 0, 5)
    wait_until(lambda: all(len(plant.stored(name)) == 5 for name in names), "the alarms of both are stored")
    wait_until(lambda: all(plant.spooled(name) == 0 for name in names), "and acked to both")
    assert not any("lost the broker" in agent.words() for agent in agents)


def test_a_stopped_agent_says_goodbye_and_a_killed_one_leaves_its_will(plant: Plant, tmp_path: Path) -> None:
    plant.start_service()
    plant.enrol(MACHINE)
    agent = plant.agent(MACHINE, tmp_path / "alarms.jsonl")

    def online() -> bool | None:
        state = plant.api.machines.get(MACHINE).agent
        return None if state is None else state.online

    for end in (agent.stop, agent.kill):
        agent.start()
        wait_until(lambda: online() is True, "the agent is online")
        end()
        wait_until(lambda: online() is False, "the agent is offline")


def test_a_service_told_to_stop_ends_cleanly_and_lets_go_of_the_database(plant: Plant) -> None:
    plant.start_service()
    running = plant.service.running
    assert running
    plant.service.stop()
    assert running.returncode == 0, plant.service.words()
    assert "Traceback" not in plant.service.words()
    assert plant.admin("enrol", MACHINE).returncode == 0, "the lock is free again"


def raw_client(plant: Plant) -> mqtt.Client:
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.connect("127.0.0.1", plant.broker.port)
    client.loop_start()
    return client


def test_bad_messages_are_quarantined_counted_and_stop_nobody(plant: Plant, tmp_path: Path) -> None:
    plant.start_service()
    plant.enrol(MACHINE)
    wait_until(plant.is_ready, "the service is ready")
    client = raw_client(plant)
    bad = [b"", b"{", b"\xff" * 100, b"[" * 60_000, b"x" * 70_000, json.dumps({"epoch": "x"}).encode()]
    for body in bad:
        client.publish(f"alarmcast/v1/{MACHINE}/events", body, qos=1).wait_for_publish(5)
    client.publish("alarmcast/v1/Padova/filler-1/events", b"{}", qos=1).wait_for_publish(5)
    client.disconnect()
    client.loop_stop()

    def quarantined() -> int:
        return sum(n for name, n in plant.api.health.status().counts.items() if name.startswith("quarantined:"))

    wait_until(lambda: quarantined() == len(bad) + 1, "all of them are quarantined")
    log = tmp_path / "alarms.jsonl"
    plant.agent(MACHINE, log).start()
    write_alarms(log, 0, 5)
    everything_is_stored_once(plant, 5)


@pytest.mark.timeout(120)
def test_the_forecast_beside_the_machine_is_the_one_over_rest(plant: Plant, tmp_path: Path) -> None:
    """From simulated history through learning to the retained message, with the commands an admin types."""
    machine = "padova/filler-0"
    history, catalogue = tmp_path / "history.csv", tmp_path / "catalogue.csv"
    now = datetime.now(UTC)
    write_log(history, machines=1, days=40, end=now - timedelta(minutes=1), seed=19)
    catalogue.write_text(catalogue_csv())
    plant.start_service()
    done = plant.admin("enrol", machine, "--catalogue", str(catalogue), "--history", str(history), "--watch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "promoted as v1" in done.stdout
    received: list[bytes] = []
    client = raw_client(plant)
    client.on_message = lambda _client, _data, message: received.append(bytes(message.payload))
    client.subscribe(every_machine(Channel.FORECAST), qos=1)
    agent = plant.agent(machine, tmp_path / "alarms.jsonl")
    agent.start()

    def ok() -> bool:
        return plant.api.forecasts.get(machine).status is ForecastStatus.OK

    wait_until(ok, "the forecast is ok")
    wait_until(lambda: received, "a forecast is published")
    beside = Forecast.model_validate_json(received[-1])
    over_rest = plant.api.forecasts.get(machine, at=beside.as_of)
    assert [(alarm.code, alarm.probability) for alarm in beside.alarms] == [
        (alarm.code, alarm.probability) for alarm in over_rest.alarms
    ]
    assert (beside.events_seen, beside.model_version) == (over_rest.events_seen, over_rest.model_version)
    client.disconnect()
    client.loop_stop()
    maps = Path(f"/proc/{plant.service.running.pid}/maps").read_text() if plant.service.running else ""
    assert "libtorch" not in maps, "the process that serves must not load torch"
