"""The volumes that keys.sh fills, as folders, and the broker that runs on what it made."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from service.broker_access.mosquitto_setup import find_plugin
from tests.conftest import free_port
from tests.deploy.conftest import REPOSITORY, DeployedBroker, replaced
from tests.deploy.sandbox import USER, let_pass

PROGRAMS = Path(sys.executable).parent
SCRIPT = REPOSITORY / "deploy/compose/keys.sh"
VOLUMES = ("authority", "broker", "service", "fleet")
OVERLAID = ("database", "prometheus", "grafana")


@dataclass(frozen=True)
class Keys:
    """One folder for each volume."""

    folder: Path
    volumes: tuple[str, ...] = VOLUMES

    def volume(self, name: str) -> Path:
        return self.folder / name

    def make(self, until: str | None = None) -> int:
        """Run keys.sh as its container would; ``until`` cuts it off before the line with these words."""
        for name in self.volumes:
            self.volume(name).mkdir(exist_ok=True, parents=True)
        let_pass(self.folder)
        text = SCRIPT.read_text(encoding="utf-8")
        if until is not None:
            before, found, _ = text.partition(until)
            assert found
            text = before.rpartition("\n")[0] + "\nkill -9 $$\nfi\n"
        return subprocess.run(["sh", "-c", text], env=self.environment(), cwd=self.folder, check=False).returncode

    def alarmcast(self, *arguments: str) -> int:
        """Run a command of ours where keys.sh would."""
        command = [str(PROGRAMS / "alarmcast"), *arguments]
        return subprocess.run(command, env=self.environment(), cwd=self.folder, check=False).returncode

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ALARMCAST_")}
        places = {name.upper(): str(self.volume(name)) for name in (*VOLUMES, *OVERLAID)}
        return inherited | places | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "BROKER_SEES": str(self.volume("broker")),
            "BROKER_PLUGIN": str(find_plugin()),
            "BROKER_USER": "mosquitto",  # whom a broker becomes that root starts on this computer
            "SERVICE_USER": str(USER),
            "DATABASE_USER": str(USER),
            "GRAFANA_USER": str(USER),
        }  # fmt: skip

    def files(self) -> dict[str, str]:
        """Return every file and a digest of what it holds."""
        found = [file for file in self.folder.rglob("*") if file.is_file()]
        return {str(file.relative_to(self.folder)): sha256(file.read_bytes()).hexdigest() for file in found}

    def broker(self) -> DeployedBroker:
        """Start the broker on what was made for it, moved to a free port of this computer."""
        broker = DeployedBroker(self.volume("broker"), free_port())
        text = (self.volume("broker") / "mosquitto.conf").read_text(encoding="utf-8")
        config = self.volume("broker") / "moved.conf"
        config.write_text(replaced(text, "listener 8883", f"listener {broker.port} 127.0.0.1"), encoding="utf-8")
        broker.run(config)
        return broker

    def copy(self, folder: Path) -> "Keys":
        shutil.copytree(self.folder, folder)
        return Keys(folder, self.volumes)
