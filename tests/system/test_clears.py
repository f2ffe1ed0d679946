"""Alarms that clear, from a machine's log to the figures: stored exactly once, their codes described."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.conftest import wait_until
from tests.system.conftest import Plant, Process
from wire.events import TransitionKind
from wire.timestamps import isoformat

MACHINE = "padova/filler-1"
CONFIG = """
site = "padova"
machine = "filler-1"
[broker]
port = {port}
[source]
kind = "tail"
path = "{log}"
[spool]
path = "{spool}"
[tail]
time = "time"
code = "name"
text = "text"
severity = "class"
state = "state"
"""


def test_clears_are_stored_once_through_kills_of_agent_and_service(plant: Plant, tmp_path: Path) -> None:
    log, config, spool = tmp_path / "journal.csv", tmp_path / "edge.toml", plant.spool(MACHINE)
    config.write_text(CONFIG.format(port=plant.broker.port, log=log, spool=spool))
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
    log.write_text("time,name,text,class,state\n")

    def write(first: int, count: int) -> None:
        with log.open("a") as file:
            for number in range(first, first + count):
                for state, seconds in (("active", 0), ("ack", 5), ("cleared", 10)):
                    at = isoformat(start + timedelta(seconds=20 * number + seconds))
                    file.write(f"{at},Infeed.{number % 3},Jam {number % 3},high,{state}\n")

    agent = Process([sys.executable, "-m", "edge_agent", "run", "--config", str(config)], tmp_path / "agent.log")
    plant.processes.append(agent)
    plant.start_service()
    plant.enrol(MACHINE)
    write(0, 100)
    agent.start()
    wait_until(lambda: plant.counted().get(MACHINE, 0) > 0, "the first are stored")
    plant.service.kill()
    write(100, 100)
    wait_until(lambda: plant.given(MACHINE) == 600, "all are in the spool")
    agent.kill()
    agent.start()
    plant.start_service()
    wait_until(lambda: plant.counted().get(MACHINE, 0) == 600 and plant.spooled(MACHINE) == 0, "all are stored")
    assert [seq for seq, _ in plant.stored(MACHINE)] == list(range(1, 601))
    for kind in (None, TransitionKind.CLEARED, TransitionKind.ACKNOWLEDGED):
        assert len(list(plant.api.machines.alarms(MACHINE, kind=kind))) == 200
    timeline = plant.api.timelines.get(MACHINE)
    assert timeline.count == 200
    assert {one.until and one.until - one.at for one in timeline.alarms} == {timedelta(seconds=10)}
    report = plant.api.alarm_metrics.get()
    assert [(one.text, one.median_seconds) for one in report.top] == [
        (f"Jam {number} (Infeed.{number})", 10.0) for number in (0, 1, 2)
    ]
    assert {entry.origin for entry in plant.api.catalogue.get().entries} == {"machine"}
