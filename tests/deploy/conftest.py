"""What is deployed, made real for the tests: images without Docker, the broker with its own configuration."""

import os
import re
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import Mosquitto, free_port, require, wait_until
from tests.deploy import compose as compose_file
from tests.deploy import dockerfile as docker_file
from tests.deploy.compose import Compose
from tests.deploy.dockerfile import Dockerfile
from tests.deploy.image import Builder, Image
from tests.deploy.sandbox import is_open_to_all
from tests.system.conftest import Plant

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def dockerfile() -> Dockerfile:
    return docker_file.read(REPOSITORY / "Dockerfile")


OVERLAYS: dict[str, tuple[str, ...]] = {
    "alone": (),
    "postgresql": ("postgresql.yml",),
    "monitoring": ("monitoring.yml",),
    "scaled": ("postgresql.yml", "scaled.yml"),
    "all": ("postgresql.yml", "scaled.yml", "monitoring.yml"),
}


@pytest.fixture(scope="session")
def compose() -> Compose:
    return compose_file.read(REPOSITORY / "docker-compose.yml")


@pytest.fixture(scope="session", params=list(OVERLAYS))
def overlaid(request: pytest.FixtureRequest) -> Compose:
    """The compose file alone, and with each of the overlays."""
    files = [REPOSITORY / "deploy/compose" / name for name in OVERLAYS[request.param]]
    return compose_file.read(REPOSITORY / "docker-compose.yml", *files)


@pytest.fixture(scope="session")
def edge(dockerfile: Dockerfile, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Builder(dockerfile, REPOSITORY, tmp_path_factory.mktemp("images")).build("edge")


@pytest.fixture(scope="session")
def service(dockerfile: Dockerfile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("images")
    packages = Path(sysconfig.get_path("purelib"))
    linked = "service" if is_open_to_all(packages) else None  # a confined process reads them as well
    yield Builder(dockerfile, REPOSITORY, folder, linked).build("service")
    # pytest keeps the folders of its last runs; a gigabyte each is too much.
    subprocess.run(["rm", "-rf", folder], check=True)


@dataclass
class DeployedBroker:
    """Mosquitto on ``deploy/mosquitto/mosquitto.conf``, moved to a free port and a folder of its own."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        text = (REPOSITORY / "deploy/mosquitto/mosquitto.conf").read_text(encoding="utf-8")
        text = replaced(text, "listener 1883 127.0.0.1", f"listener {self.port} 127.0.0.1")
        text = replaced(text, "persistence_location /var/lib/mosquitto/", f"persistence_location {self.folder}/")
        config = self.folder / "mosquitto.conf"
        config.write_text(text, encoding="utf-8")
        self.run(config)

    def run(self, config: Path) -> None:
        """Start it on a configuration that is ready."""
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([program, "-c", config], stdout=log, stderr=log)
        wait_until(self._answers, "mosquitto answers")

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=20)
            self.process = None

    @property
    def log(self) -> Path:
        return self.folder / "mosquitto.log"

    def _answers(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[DeployedBroker]:
    require(shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    folder = tmp_path / "broker"
    folder.mkdir()
    if os.getuid() == 0:  # started as root, Mosquitto becomes a user of its own
        folder.chmod(0o777)
        for parent in (tmp_path, *tmp_path.parents[:2]):
            parent.chmod(parent.stat().st_mode | 0o055)
    deployed = DeployedBroker(folder)
    deployed.start()
    yield deployed
    deployed.stop()


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a running service tells Prometheus."""
    folder = tmp_path_factory.mktemp("told")
    plant = Plant(folder, Mosquitto(folder))  # a broker that is away
    plant.start_service()
    try:
        answer = plant.get("/metrics")
        assert answer.status_code == 200
        return answer.text
    finally:
        plant.service.stop()


def replaced(text: str, line: str, other: str) -> str:
    """Return a configuration in which one line is another."""
    changed, count = re.subn(rf"^{re.escape(line)}$", other, text, flags=re.MULTILINE)
    assert count == 1, f"mosquitto.conf has {count} lines {line!r}"
    return changed
