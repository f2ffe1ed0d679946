"""``alarmcast-edge discover``: writes a configuration that the agent accepts."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.discover import discover
from edge_agent.errors import ConfigRejected, EdgeError
from edge_agent.settings import Settings, load
from edge_agent.sources.build import build_source, code_book
from edge_agent.sources.codes import read_code_map
from edge_agent.sources.discovery import Access
from edge_agent.sources.modbus_browse import History
from tests.conftest import Mosquitto, free_port
from tests.support.opcua_server import OpcuaServer
from tests.support.plc_servers import ModbusServer
from tests.support.sparkplug_node import SparkplugNode
from wire.clock import PlantClock


@pytest.fixture(scope="module")
def opcua(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpcuaServer]:
    made = OpcuaServer(tmp_path_factory.mktemp("opcua"))
    yield made
    made.close()


class Activity:
    """Does something over and over while a command watches."""

    def __init__(self, *steps: Any) -> None:
        self._steps, self._stop = steps, Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            for step in self._steps:
                step()
                self._stop.wait(0.2)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def found_in(url: str, folder: Path, seconds: float = 0.5) -> Settings:
    """Return the settings that were found; the agent can build their source."""
    out = folder / "found.toml"
    assert discover(Access(url), seconds=seconds, out=out) == 0
    settings = load(out, {}, {})
    build_source(settings, PlantClock(), code_book(settings))
    out.unlink()
    return settings


def code_map(settings: Settings) -> dict[str, int]:
    assert settings.source_codes is not None
    found = read_code_map(settings.source_codes)
    settings.source_codes.unlink()
    return found


def test_opcua_conditions_come_before_packml_and_packml_before_tags(opcua: OpcuaServer, tmp_path: Path) -> None:
    opcua.add_fault('Fault "door"')
    found = found_in(opcua.url, tmp_path).source_options
    assert (found["mode"], found["node"], found["arrays"]) == ("packml", "ns=2;s=Admin", ["Alarm", "Warning"])
    opcua.condition("Jam", active=True)
    settings = found_in(opcua.url, tmp_path)
    assert settings.source_options["mode"] == "conditions"
    assert code_map(settings) == {"Infeed.Jam": 1}
    opcua.condition("Jam", active=False)
    opcua.remove("Alarm")
    opcua.remove("Warning")
    settings = found_in(opcua.url, tmp_path)
    (signal,) = settings.source_options["signals"]
    assert (signal["as"], signal["name"]) == ("flag", 'Machine.Fault "door"')
    assert code_map(settings) == {'Machine.Fault "door"': 1}


def test_modbus_values_that_change_are_signals(tmp_path: Path) -> None:
    server = ModbusServer()

    def set_alarms(code: int) -> None:
        server.words(3, code)
        server.coil(5, value=code > 0)

    try:
        with Activity(lambda: set_alarms(139), lambda: set_alarms(0)):
            settings = found_in(f"modbus://127.0.0.1:{server.port}/1", tmp_path, seconds=3)
    finally:
        server.stop()
    found = {(one["table"], one["address"]): one["as"] for one in settings.source_options["signals"]}
    assert found["coil", 5] == "flag"
    assert found["holding", 3] == "code"
    assert code_map(settings)["coil 5"]


@pytest.mark.parametrize(
    ("values", "meaning"),
    [
        ([0], None),
        ([0, 139, 0], "code"),
        ([0, 1, 3, 1, 0], "bits"),
        ([0, 1, 0, 4], "code"),
        (list(range(30)), None),
        ([0, 1] * 40, None),
    ],
)
def test_register_is_judged_by_its_changes(values: list[int], meaning: str | None) -> None:
    history = History()
    for value in values:
        history.add(value)
    assert history.meaning(polls=100) == meaning


def test_sparkplug_device_is_found_by_its_births(mosquitto: Mosquitto, tmp_path: Path) -> None:
    node = SparkplugNode(mosquitto)
    try:
        with Activity(lambda: node.data(code=1)):
            settings = found_in(f"mqtt://127.0.0.1:{mosquitto.port}", tmp_path, seconds=2)
    finally:
        node.close()
    found = settings.source_options
    assert (found["group"], found["edge_node"]) == ("plant", "node")
    assert [(one["device"], one["metric"], one["as"]) for one in found["signals"]] == [
        ("filler", "Alarms/Code", "code"),
        ("filler", "Alarms/Jam", "flag"),
    ]
    assert code_map(settings) == {"filler/Alarms/Jam": 1}


def test_json_topics_are_found_with_their_fields(mosquitto: Mosquitto, tmp_path: Path) -> None:
    plant = mqtt.Client(CallbackAPIVersion.VERSION2)
    plant.connect("127.0.0.1", mosquitto.port)
    plant.loop_start()

    def send(topic: str, body: Any) -> None:
        plant.publish(topic, json.dumps(body), qos=1)

    alarm = {"ts": 1794812400000, "alarm": {"code": "F7", "text": "Jam", "active": True}}
    steps = [
        lambda: send("padova/line1/filler/alarms", alarm),
        lambda: send("padova/line1/packer/alarms", alarm | {"alarm": {**alarm["alarm"], "code": 139}}),  # type: ignore[dict-item]
        lambda: send("padova/line1/filler/speed", {"ts": 1, "value": 7}),
        lambda: plant.publish("padova/line1/filler/alarms", b"\xff"),
    ]
    try:
        with Activity(*steps):
            settings = found_in(f"mqtt://127.0.0.1:{mosquitto.port}", tmp_path, seconds=2)
    finally:
        plant.disconnect()
        plant.loop_stop()
    found = settings.source_options
    assert found["topics"] == ["padova/line1/filler/alarms", "padova/line1/packer/alarms"]
    fields = {"code": "alarm.code", "time": "ts", "text": "alarm.text", "state": "alarm.active"}
    assert {name: found[name] for name in fields} == fields
    assert code_map(settings) == {"F7": 1}


def test_nothing_found_writes_nothing_and_says_what_to_do(
    mosquitto: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.toml"
    assert discover(Access(f"mqtt://127.0.0.1:{mosquitto.port}"), seconds=0.2, out=out) == 1
    assert "trigger an alarm while the command runs" in capsys.readouterr().out
    assert not out.exists()


@pytest.mark.parametrize("scheme", ["opc.tcp", "modbus", "mqtt"])
def test_server_that_does_not_answer_is_one_sentence(tmp_path: Path, scheme: str) -> None:
    with pytest.raises(EdgeError, match="Check address, user and security settings"):
        discover(Access(f"{scheme}://127.0.0.1:{free_port()}"), seconds=1, out=tmp_path / "x.toml")


def test_wrong_address_and_existing_file_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected, match=r"give an address like opc\.tcp://"):
        discover(Access("http://plc"), seconds=1, out=tmp_path / "x.toml")
    (tmp_path / "x-codes.csv").touch()
    with pytest.raises(ConfigRejected, match=r"x-codes\.csv exists; give another file"):
        discover(Access("mqtt://plc"), seconds=1, out=tmp_path / "x.toml")
