"""An agent that is killed with SIGKILL loses nothing that it took, and stores nothing twice."""

import http.client
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.status import inspect_spool
from tests.conftest import Mosquitto, free_port, wait_until
from tests.support.plc_servers import ModbusServer
from tests.system.conftest import clean_environment

TOKEN = "correct horse"  # noqa: S105
BASE = """
site = "padova"
machine = "filler-1"
[broker]
port = {port}
[spool]
path = "{folder}/spool"
[source]
password = "correct horse"
"""


class Agent:
    """A real agent without a broker: all its events stay in the spool."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder, self.config = folder, folder / "edge.toml"
        self.config.write_text(BASE.format(port=free_port(), folder=folder) + source)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "edge_agent", "run", "--config", str(self.config)]
        with (self.folder / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env=clean_environment())

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stored(self) -> int:
        view = inspect_spool(self.folder / "spool")
        return view.events - view.transitions if view else 0

    def until_stored(self, count: int) -> None:
        wait_until(lambda: self.stored() >= count, f"{count} events are stored")

    def codes(self) -> list[int]:
        with closing(sqlite3.connect(f"file:{self.folder / 'spool'}?mode=ro", uri=True)) as database:
            query = "SELECT code FROM events WHERE kind = 0 ORDER BY seq"
            return [code for (code,) in database.execute(query)]


def last_code(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder / 'spool'}?mode=ro", uri=True)) as database:
        return int(database.execute("SELECT max(code) FROM events").fetchone()[0])


@pytest.fixture
def agents() -> Iterator[list[Agent]]:
    made: list[Agent] = []
    yield made
    for agent in made:
        agent.kill()


def test_every_alarm_that_http_answered_is_stored(tmp_path: Path, agents: list[Agent]) -> None:
    port = free_port()
    agent = Agent(tmp_path, f'kind = "http"\n[http]\nlisten = "127.0.0.1:{port}"\n')
    agents.append(agent)

    def post(code: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            body = json.dumps({"alarm": code})
            connection.request("POST", "/", body, {"Authorization": f"Bearer {TOKEN}"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    answered: list[int] = []
    for first in (0, 100):
        agent.start()
        wait_until(partial(post, first), "the agent answers")
        answered += [first, *(code for code in range(first + 1, first + 30) if post(code))]
        agent.kill()
    assert len(answered) == 60
    assert agent.codes() == answered


def test_mqtt_messages_in_flight_are_stored_once(
    tmp_path: Path, mosquitto: Mosquitto, agents: list[Agent]
) -> None:
    source = (
        'kind = "mqtt"\n[mqtt]\n'
        f'url = "mqtt://127.0.0.1:{mosquitto.port}"\nclient_id = "a"\ntopics = ["alarms"]\ncode = "code"\n'
    )
    agent = Agent(tmp_path, source)
    agents.append(agent)
    agent.start()
    plant = mqtt.Client(CallbackAPIVersion.VERSION2)
    plant.connect("127.0.0.1", mosquitto.port)
    plant.loop_start()

    def is_read() -> bool:
        plant.publish("alarms", json.dumps({"code": 0}), qos=1).wait_for_publish(10)
        return agent.stored() > 0

    wait_until(is_read, "the agent has subscribed")
    for code in range(1, 1501):
        plant.publish("alarms", json.dumps({"code": code}), qos=1)
    for count in (100, 700):
        agent.until_stored(count)
        agent.kill()
        agent.start()
    wait_until(lambda: last_code(tmp_path) == 1500, "all messages are stored")
    agent.kill()
    plant.disconnect()
    plant.loop_stop()
    assert [code for code in agent.codes() if code] == list(range(1, 1501))


def test_polled_alarms_are_not_raised_again(tmp_path: Path, agents: list[Agent]) -> None:
    server = ModbusServer()
    source = (
        f'kind = "modbus"\n[modbus]\nurl = "127.0.0.1:{server.port}"\npoll_seconds = 0.02\n'
        '[[modbus.signals]]\nas = "bits"\ntable = "holding"\naddress = 0\ncount = 10\ncode = 1\n'
    )
    agent = Agent(tmp_path, source)
    agents.append(agent)
    try:
        for word in range(3):
            agent.start()
            server.words(word, 0xFFFF)
            agent.until_stored(16 * (word + 1))
            agent.kill()
    finally:
        server.stop()
    assert sorted(agent.codes()) == list(range(1, 49))
