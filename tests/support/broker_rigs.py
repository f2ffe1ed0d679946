"""The plant's broker with a Sparkplug edge node, or with a publisher of JSON."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.settings import SourceKind
from tests.conftest import Mosquitto
from tests.support.rig import Rig
from tests.support.sparkplug_node import SparkplugNode


class BrokerRig(Rig):
    """The plant's broker; ``agent`` and ``plant`` are its users."""

    password = "secret"  # noqa: S105

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "mosquitto"
        self._folder.mkdir()
        for one in (folder, *folder.parents[:2], self._folder):
            one.chmod(one.stat().st_mode | 0o055)
        users = self._folder / "users"
        self.broker = Mosquitto(self._folder, anonymous=False)
        self.broker.extra = ("user root\n" if os.getuid() == 0 else "") + f"password_file {users}\n"
        users.touch(mode=0o700)
        self._set_password("plant", "secret")
        self._set_password("agent", "secret")
        self.broker.start()
        self.options = {"url": f"mqtt://127.0.0.1:{self.broker.port}", "username": "agent"}

    def _set_password(self, user: str, password: str) -> None:
        command = ["mosquitto_passwd", "-b", str(self._folder / "users"), user, password]
        subprocess.run(command, check=True, capture_output=True)

    def kill(self) -> None:
        self.broker.kill()

    def start(self) -> None:
        self.broker.start()

    def revoke(self) -> None:
        self._set_password("agent", "another")
        self._reload()

    def permit(self) -> None:
        self._set_password("agent", "secret")
        self._reload()

    def _reload(self) -> None:
        assert self.broker.process is not None
        self.broker.process.send_signal(signal.SIGHUP)


class SparkplugRig(BrokerRig):
    kind = SourceKind.SPARKPLUG

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.node = SparkplugNode(self.broker, "plant", "secret")
        signals = [{"as": "code", "device": "filler", "metric": "Alarms/Code"}]
        self.options |= {"group": "plant", "edge_node": "node", "host_id": "host", "signals": signals}

    def raise_alarm(self, code: int) -> None:
        self.node.data(code=code)

    def remove(self) -> None:
        self.node.birth(with_code=False)

    def restore(self) -> None:
        self.node.birth()

    def corrupt(self) -> None:
        self.node.data(code=2**32 - 1)

    def close(self) -> None:
        self.node.close()
        super().close()


class MqttRig(BrokerRig):
    kind = SourceKind.MQTT
    keeps = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.options |= {"client_id": "agent", "topics": ["alarms"], "code": "code"}
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.username_pw_set("plant", "secret")
        self._client.max_inflight_messages_set(1000)
        self._client.connect("127.0.0.1", self.broker.port)
        self._client.loop_start()

    def raise_alarm(self, code: int) -> None:
        self._publish({"code": code})

    def corrupt(self) -> None:
        self._publish({"code": {"number": 1}})

    def _publish(self, body: dict[str, Any]) -> None:
        self._client.publish("alarms", json.dumps(body), qos=1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
        super().close()
