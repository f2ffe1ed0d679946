"""Agents as people meet them: their status, their diagnosis, their end, and two of them with one name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import wait_until
from tests.system.conftest import Plant, clean_environment, write_alarms

MACHINE = "padova/filler-1"


def edge(plant: Plant, command: str, *more: str) -> subprocess.CompletedProcess[str]:
    flags = ["--site", "padova", "--machine", "filler-1", "--source-kind", "simulated"]
    flags += ["--broker-port", str(plant.broker.port), "--spool-path", str(plant.spool(MACHINE))]
    return subprocess.run(
        [sys.executable, "-m", "edge_agent", command, *flags, *more],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
    )


def status(plant: Plant, *more: str) -> dict[str, Any]:
    done = edge(plant, "status", "--json", *more)
    return dict(json.loads(done.stdout)) if done.stdout else {}


def test_status_follows_an_agent_from_its_first_ack_to_its_end(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    plant.start_service()
    plant.enrol(MACHINE)
    agent = plant.agent(MACHINE, log)
    agent.start()
    write_alarms(log, 0, 10)
    wait_until(lambda: status(plant).get("last_ack_at"), "an ack is told")
    told = status(plant)
    assert agent.running
    assert (told["running"], told["connected"], told["spooled"], told["error"]) == (True, True, 0, None)
    assert (told["pid"], told["machine"]) == (agent.running.pid, MACHINE)
    assert abs(told["skew_ms"]) < 60_000
    words = edge(plant, "status")
    assert words.returncode == 0
    assert f"connected to 127.0.0.1:{plant.broker.port}" in words.stdout
    plant.broker.kill()
    write_alarms(log, 10, 5)
    wait_until(lambda: status(plant)["spooled"] == 5, "what waits is told")
    wait_until(lambda: not status(plant)["connected"], "that the broker is away is told")
    assert "cannot reach the broker" in status(plant)["error"] or "lost the broker" in status(plant)["error"]
    agent.stop()
    told = status(plant)
    assert (told["running"], told["connected"], told["spooled"]) == (False, False, 5)
    assert "not running" in edge(plant, "status").stdout


def test_rows_that_cannot_be_read_are_seen_at_the_machine_and_at_the_service(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.csv"
    plant.start_service()
    plant.enrol(MACHINE)
    agent = plant.agent(MACHINE, log)
    agent.start()
    wait_until(lambda: plant.api.machines.get(MACHINE).agent, "the agent is heard")
    log.write_text("16.11.2026 08:00:00,139\n2026-11-16 08:00:00;139\n2026-11-16 08:00:00,F139\n")

    def skipped() -> int:
        view = plant.api.machines.get(MACHINE).agent
        return view.skipped if view else 0

    wait_until(lambda: skipped() == 3, "the service knows of the rows, long before the next heartbeat")
    view = plant.api.machines.get(MACHINE).agent
    assert view
    assert view.last_skipped
    assert "'F139' is not an alarm code" in view.last_skipped.text
    assert MACHINE in plant.api.health.status().warnings["unreadable_rows"]
    agent.kill()
    agent.start()
    wait_until(lambda: status(plant).get("connected"), "the agent is back")
    assert (status(plant)["skipped"], skipped()) == (3, 3)
    assert "3 rows of the source could not be read; last: byte" in edge(plant, "status").stdout


def test_the_doctor_finds_a_machine_that_is_not_registered_and_then_all_well(plant: Plant) -> None:
    plant.start_service()
    wait_until(plant.is_ready, "the service is ready")
    ill = edge(plant, "doctor")
    assert ill.returncode == 1
    assert "WRONG  service: no ack was received" in ill.stdout
    assert f"alarmcast admin enrol {MACHINE}" in ill.stdout
    plant.enrol(MACHINE)
    well = edge(plant, "doctor")
    assert well.returncode == 0, well.stdout
    assert "well   service: acked in" in well.stdout
    assert plant.api.machines.get(MACHINE).agent is None, "a doctor is not the machine"


def test_a_stopped_agent_hands_over_what_it_has_and_keeps_what_it_cannot(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    plant.start_service()
    plant.enrol(MACHINE)
    agent = plant.agent(MACHINE, log, stop_drain_seconds=15)
    agent.start()
    wait_until(lambda: "connected to" in agent.words(), "the agent is connected")
    write_alarms(log, 0, 5000)
    wait_until(lambda: plant.given(MACHINE) == 5000, "all is spooled")
    agent.stop()
    assert plant.spooled(MACHINE) == 0
    assert len(plant.stored(MACHINE)) == 5000
    plant.broker.kill()
    agent.start()
    write_alarms(log, 5000, 100)
    wait_until(lambda: plant.given(MACHINE) == 5100, "all is spooled")
    agent.stop()
    assert plant.spooled(MACHINE) == 100


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_of_duplicate_agents_with_one_name_one_gives_way_keeps_its_own_and_both_sides_say_so(
    plant: Plant, tmp_path: Path, version: str
) -> None:
    plant.start_service()
    plant.enrol(MACHINE)

    def online() -> bool:
        agent = plant.api.machines.get(MACHINE).agent
        return bool(agent and agent.online)

    agents = {}
    for name in ("first", "second"):
        spool = tmp_path / f"{name}.spool"
        log = tmp_path / f"{name}.jsonl"
        agents[name] = plant.agent(MACHINE, log, spool_path=spool, broker_mqtt_version=version)
        agents[name].log = tmp_path / f"{name}.log"
        agents[name].start()
        wait_until(online, "the machine is online")

    def yielding() -> list[str]:
        return [name for name, agent in agents.items() if "another agent is connected as" in agent.words()]

    # MQTT 5 keeps the first one's last will for a while, so the second sees that somebody is there; on 3.1.1
    # the will is told at once, and it is the first that finds its place taken.
    wait_until(yielding, "one of them gives way")
    (yields,) = yielding()
    assert yields == ("second" if version == "5" else "first")
    stays = "first" if yields == "second" else "second"
    write_alarms(tmp_path / f"{stays}.jsonl", 0, 50)
    write_alarms(tmp_path / f"{yields}.jsonl", 1000, 5)
    wait_until(
        lambda: [code for _, code in plant.stored(MACHINE)] == list(range(50)), "the one that stays is heard"
    )

    def told() -> dict[str, Any]:
        return status(plant, "--spool-path", str(tmp_path / f"{yields}.spool"))

    wait_until(lambda: told().get("spooled") == 5, "the other keeps its own")
    wait_until(lambda: "another agent is connected as" in (told().get("error") or ""), "and says why")
    wait_until(lambda: "duplicate_agents" in plant.api.health.status().warnings, "the service tells of two agents")
    assert MACHINE in plant.api.health.status().warnings["duplicate_agents"]
    assert len(yielding()) == 1, "they do not fight"
    assert online(), "the farewell of the one does not take the other offline"
    agents[stays].stop()
    wait_until(lambda: not online(), "the machine is offline")


def codes(plant: Plant) -> list[int]:
    return sorted(code for _, code in plant.stored(MACHINE))


def test_an_edge_computer_restored_from_an_image_loses_nothing_and_begins_a_new_epoch(
    plant: Plant, tmp_path: Path
) -> None:
    log, spool, image = tmp_path / "alarms.jsonl", plant.spool(MACHINE), tmp_path / "image"
    plant.start_service()
    plant.enrol(MACHINE)
    agent = plant.agent(MACHINE, log)
    for first in (0, 10):
        write_alarms(log, first, 10)
        agent.start()
        wait_until(lambda first=first: len(codes(plant)) == first + 10, "its alarms are stored")  # type: ignore[misc]
        agent.stop()
        if not image.exists():
            shutil.copy(spool, image)
            size = log.stat().st_size
    shutil.copy(image, spool)
    os.truncate(log, size)
    write_alarms(log, 1000, 10)
    agent.start()
    wait_until(lambda: len(codes(plant)) == 30, "alarms whose numbers were used before are stored")
    wait_until(lambda: plant.spooled(MACHINE) == 0, "and acked")
    write_alarms(log, 2000, 5)
    wait_until(lambda: len(codes(plant)) == 35, "and so are later ones")
    assert codes(plant) == [*range(20), *range(1000, 1010), *range(2000, 2005)]
    assert plant.api.quarantine.page().items == []
    wait_until(lambda: "agents" in plant.api.health.status().warnings, "the agent says that it was restored")
    assert "restored from an image" in plant.api.health.status().warnings["agents"]
    assert "restored from an image" in " ".join(edge(plant, "status").stdout.split())
    assert plant.status()["counts"]["reused_numbers"] == 10, "only those before the new epoch"


def test_a_log_that_is_cut_while_the_agent_is_away_leaves_a_gap(plant: Plant, tmp_path: Path) -> None:
    log = tmp_path / "alarms.jsonl"
    plant.start_service()
    plant.enrol(MACHINE)
    agent = plant.agent(MACHINE, log)
    write_alarms(log, 0, 10)
    agent.start()
    wait_until(lambda: len(codes(plant)) == 10, "its alarms are stored")
    agent.stop()
    write_alarms(log, 10, 10)
    log.write_text("")
    write_alarms(log, 20, 3)
    agent.start()
    wait_until(lambda: codes(plant) == [*range(10), *range(20, 23)], "what is left is stored")
    wait_until(lambda: plant.api.machines.gaps(MACHINE).gaps, "the gap is stored")
    (gap,) = plant.api.machines.gaps(MACHINE).gaps
    assert (gap.reason, gap.first_at.isoformat()) == ("source_lost", "2026-11-16T00:00:00+00:00")
    wait_until(lambda: "agents" in plant.api.health.status().warnings, "the warning is shown")
    assert "alarms.jsonl was truncated or replaced" in plant.api.health.status().warnings["agents"]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_of_two_computers_with_copies_of_one_spool_one_gives_way_and_both_are_named(
    plant: Plant, tmp_path: Path, version: str
) -> None:
    plant.start_service()
    plant.enrol(MACHINE)
    agents = {}
    for name in ("first", "second"):
        spool, log = tmp_path / f"{name}.spool", tmp_path / f"{name}.jsonl"
        agents[name] = plant.agent(MACHINE, log, spool_path=spool, broker_mqtt_version=version)
        agents[name].log = tmp_path / f"{name}.log"
    write_alarms(tmp_path / "first.jsonl", 0, 10)
    agents["first"].start()
    wait_until(lambda: len(codes(plant)) == 10, "the first is heard")
    agents["first"].stop()
    for kind in ("spool", "jsonl"):
        shutil.copy(tmp_path / f"first.{kind}", tmp_path / f"second.{kind}")
    for name, agent in agents.items():
        agent.start()
        wait_until(lambda agent=agent: agent.words().count("connected to") > (agent is agents["first"]), name)  # type: ignore[misc]
    wait_until(
        lambda: "another agent is connected as" in agents["first"].words(), "the first finds its place taken"
    )
    write_alarms(tmp_path / "first.jsonl", 100, 5)
    write_alarms(tmp_path / "second.jsonl", 200, 5)
    wait_until(lambda: {*range(200, 205)} <= set(codes(plant)), "the second is heard")
    wait_until(lambda: "duplicate_agents" in plant.api.health.status().warnings, "the service knows of both")
    names = [f"/{agent.running.pid}/" for agent in agents.values() if agent.running]
    warning = plant.api.health.status().warnings["duplicate_agents"]
    assert [name in warning for name in names] == [True, True]
    view = plant.api.machines.get(MACHINE).agent
    assert view
    assert view.duplicate
    assert view.duplicate.text == warning
    kept = status(plant, "--spool-path", str(tmp_path / "first.spool"))
    assert kept["spooled"] == 5, "nothing of the other is forgotten by an ack that was not for it"
    agents["second"].stop()
    agents["first"].stop()
    agents["first"].start()
    wait_until(lambda: {*range(100, 105)} <= set(codes(plant)), "what it kept arrives once the other is gone")
