"""The commands of docs/connect.md, typed as they are in an empty folder.

What differs: nothing is installed, the ports are free ones, and NAME, which a reader replaces, is this computer.
Lines that want a terminal of their own get one; the others are typed in a third.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from alarmcast import Client
from tests.conftest import free_port, require, wait_until
from tests.support.secured_broker import has_plugin
from tests.system.conftest import clean_environment, write_alarms

ROOT = Path(__file__).parents[2]


def commands(block: int) -> list[tuple[str, bool]]:
    """Return the commands of one of the page's blocks, and whether each wants a terminal of its own."""
    page = (ROOT / "docs" / "connect.md").read_text(encoding="utf-8")
    text = re.findall(r"^```\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)[block]
    lines = [re.split(r"\s+# ", line, maxsplit=1) for line in text.splitlines()]
    return [
        (command, bool(notes) and notes[0].startswith("in a terminal of its own")) for command, *notes in lines
    ]


class Reader:
    """Somebody who types, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = clean_environment() | {"ALARMCAST_PORT": "0"}
        path = (str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin")
        self.environment["PATH"] = os.pathsep.join(path)
        self._terminals: list[subprocess.Popen[bytes]] = []

    @property
    def log(self) -> Path:
        return self.folder / "terminals.log"

    def type(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def open_terminal(self, *typed: str) -> None:
        with self.log.open("ab") as log:
            command = ["bash", "-c", "\n".join(typed)]
            terminal = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self._terminals.append(terminal)

    def leave(self) -> None:
        for terminal in reversed(self._terminals):
            with suppress(ProcessLookupError):
                os.killpg(terminal.pid, signal.SIGTERM)
            try:
                terminal.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(terminal.pid, signal.SIGKILL)
                terminal.wait()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    require(has_plugin(), "mosquitto with its dynamic-security plugin")
    for parent in (tmp_path, *tmp_path.parents[:2]):  # Mosquitto started by root is another user
        parent.chmod(parent.stat().st_mode | 0o055)
    folder = tmp_path / "earnest"
    folder.mkdir()
    found = Reader(folder)
    yield found
    found.leave()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.timeout(600)
def test_the_commands_that_connect_a_machine_work_as_shown(reader: Reader) -> None:
    folder, port = reader.folder, free_port()
    (folder / "catalogue.csv").write_bytes((ROOT / "edge_agent/simulator/catalogue.csv").read_bytes())
    reader.type("alarmcast-edge simulate --machines 4 --days 40 --seed 5 --out alarms.csv")
    install, *typed = commands(0)
    assert install[0].startswith("pip install")
    exported: list[str] = []
    for command, own_terminal in typed:
        line = command.replace("--host NAME", "--host localhost")
        line += f" --port {port}" if "broker-init" in line else ""
        if line.startswith("export "):
            exported.append(line)
        elif not own_terminal:
            reader.type(line)
        else:
            reader.open_terminal(*exported, line)
            if line.startswith("mosquitto"):
                wait_until(lambda: answers(port), f"the broker answers: {reader.log.read_text()}")
            else:
                token = folder / "data/admin.token"
                wait_until(token.exists, "the service has started", 60)
    assert exported, "the service is told how to reach the broker"
    checked = reader.log.read_text()
    assert "OK    credentials: the broker accepts the credentials" in checked
    assert "FAIL" not in checked

    toml = folder / "edge.toml"
    text = toml.read_text().replace("/var/log/machine/alarms.csv", str(folder / "live.jsonl"))
    toml.write_text(text.replace("/var/lib/alarmcast/spool.sqlite3", str(folder / "spool.sqlite3")))
    write_alarms(folder / "live.jsonl", 0, 3)
    ((run, _),) = commands(1)
    reader.open_terminal(run)
    machine = next(word for word in shlex.split(typed[-1][0]) if word.startswith("padova/"))
    url = re.search(r"listens on (http://\S+?);", checked)
    assert url, checked
    key = (folder / "data/admin.token").read_text().strip()
    with Client(url[1], key=key) as client:
        wait_until(lambda: _is_online(client, machine), "the agent's machine is online")


def _is_online(client: Client, machine: str) -> bool:
    agent = client.machines.get(machine).agent
    return agent is not None and agent.online
