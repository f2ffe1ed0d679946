"""A machine's past and its agent, as a stranger brings them: one log, read by both, and no alarm twice."""

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.conftest import require, wait_until
from tests.support.secured_broker import GuardedMosquitto, guarded_in, has_plugin
from tests.system.conftest import Plant, Process
from wire.timestamps import to_us

FILLER = "plant/filler-1"
ROME = ZoneInfo("Europe/Rome")


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    broker: GuardedMosquitto = guarded_in(tmp_path / "guarded")
    broker.start()
    plant = Plant(tmp_path, broker, environment=broker.environment)
    plant.start_service()
    wait_until(plant.is_ready, "the service is ready")
    yield plant
    for process in reversed(plant.processes):
        if process.running is not None:
            process.running.kill()
            process.running.wait()
    broker.kill()


def local_row(at: datetime, code: int, serial: str) -> str:
    return f"{at.astimezone(ROME):%Y-%m-%d %H:%M:%S.%f},{code},{serial}\n"


def stored(plant: Plant) -> Counter[tuple[int, int]]:
    """Return how often each alarm of all machines is stored, by time and code."""
    path = plant.data / "alarmcast.sqlite3"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return Counter(database.execute("SELECT at_us, code FROM events").fetchall())


def agent(plant: Plant, edge_toml: Path, log: Path) -> Process:
    """Return the agent of an edge.toml as the admin got it, with nothing but its paths corrected."""
    paths = ["--source-path", str(log), "--spool-path", str(plant.spool(FILLER))]
    command = [sys.executable, "-m", "edge_agent", "run", "--config", str(edge_toml), *paths]
    process = Process(command, plant.folder / "agent.log")
    plant.processes.append(process)
    return process


@pytest.mark.parametrize("zone", [[], ["--history-zone", "UTC"]])
def test_an_agent_on_the_log_that_was_loaded_sends_no_alarm_twice_and_leaves_none_out(
    plant: Plant, tmp_path: Path, zone: list[str]
) -> None:
    # A row a minute, each with a microsecond of its own: an hour's shift is never the time of another row.
    now = datetime.now(UTC).replace(microsecond=0)
    past = [(now - timedelta(minutes=n, microseconds=n), n % 7) for n in range(400, 0, -1)]
    log, edge_toml = tmp_path / "local.csv", tmp_path / "edge.toml"
    written = [at if not zone else at.replace(tzinfo=ROME).astimezone(UTC) for at, _ in past]
    rows = [local_row(at, code, "3") for at, (_, code) in zip(written, past, strict=True)]
    log.write_text("timestamp,alarm,serial\n" + "".join(rows) + local_row(now, 99, "4"))
    options = ["--time-zone", "Europe/Rome", "--serial", "3", "--edge-toml", str(edge_toml), *zone]
    done = plant.admin("enrol", FILLER, "--history", str(log), *options)
    assert done.returncode == 0, done.stderr
    assert "400 events stored" in done.stdout
    expected = Counter((to_us(at), code) for at, code in past)
    assert stored(plant) == expected
    agent(plant, edge_toml, log).start()
    fresh = datetime.now(UTC)
    last = fresh if not zone else fresh.replace(tzinfo=ROME).astimezone(UTC)
    with log.open("a") as file:
        file.write(local_row(last, 50, "3") + local_row(last, 51, "4") + local_row(last, 52, "3"))
    more = Counter([(to_us(fresh), 50), (to_us(fresh), 52)])
    wait_until(lambda: (to_us(fresh), 52) in stored(plant), "the new alarms are stored")
    assert stored(plant) == expected + more


def test_a_refused_past_leaves_the_machine_enrolled_and_its_credentials_kept(plant: Plant, tmp_path: Path) -> None:
    log, edge_toml = tmp_path / "two.csv", tmp_path / "edge.toml"
    now = datetime.now(UTC)
    log.write_text("".join(local_row(now - timedelta(hours=1), n, str(n % 2)) for n in range(10)))
    done = plant.admin("enrol", FILLER, "--history", str(log), "--edge-toml", str(edge_toml), "--yes")
    assert done.returncode != 0
    assert "Its serials: 0 (5 rows), 1 (5 rows)." in done.stderr
    assert f"alarmcast admin history load {FILLER}" in done.stderr
    assert "password = " in edge_toml.read_text()
    assert stored(plant) == Counter()
    later = plant.admin("history", "load", FILLER, str(log), "--serial", "1")
    assert later.returncode == 0, later.stderr
    assert 'serial = "1"' in later.stdout, "what the agent's configuration needs is said"


def test_whoever_watches_an_enrolment_is_told_what_it_waits_for(plant: Plant, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "service",
        "admin",
        "enrol",
        FILLER,
        "--edge-toml",
        str(tmp_path / "edge.toml"),
    ]
    watching = Process([*command, "--watch", "--data-dir", str(plant.data)], tmp_path / "watch.log")
    plant.processes.append(watching)
    watching.start()
    wait_until(lambda: "Waiting for the first event. Start the machine's agent" in watching.words(), "it says so")
    past = datetime.now(UTC) - timedelta(days=10)
    rows = "".join(local_row(past + timedelta(hours=n), 5, "1") for n in range(200))
    plant.api.enrolment.load_history(FILLER, rows.encode())
    wait_until(lambda: "of 336 hourly windows; needs about" in watching.words(), "it says what is missing")
