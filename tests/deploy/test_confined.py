"""Both images held as they are when deployed: nothing can be written to but their own folders."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM

import pytest

from tests.conftest import free_port, require, wait_until
from tests.deploy.conftest import REPOSITORY, DeployedBroker
from tests.deploy.dockerfile import Dockerfile
from tests.deploy.image import Image
from tests.deploy.sandbox import USER, confined, hand_over, is_possible, let_pass

PACKAGES = ["alarmcast", "edge_agent", "forecasting", "service", "wire"]
NAMED_BY_A_PAGE = re.compile(r'"(/(?:_nicegui|static)/[^"?]+\.(?:css|js|mjs|svg))\b')

pytestmark = pytest.mark.timeout(600)  # the service's wheels are large


@dataclass(frozen=True)
class Container:
    """An image and the two folders that a process of it may write to."""

    image: Image
    data: Path
    tmp: Path

    @contextmanager
    def running(self, *words: str, **settings: object) -> Iterator[None]:
        """Run the ENTRYPOINT with these words, confined, until the end of the block; it must end well."""
        entry = self.image.dockerfile.last(self.image.target, "ENTRYPOINT").words()
        process = subprocess.Popen(
            confined(self.image.command([*entry, *words]), self.data, self.tmp),
            env=self.environment(settings),
            cwd="/",  # which is not its own: nothing may rely on where it is started
        )
        try:
            yield
        finally:
            process.send_signal(SIGTERM)
            code = process.wait(timeout=20)
        assert code == 0

    def environment(self, settings: dict[str, object]) -> dict[str, str]:
        volume = self.image.dockerfile.last(self.image.target, "VOLUME").text
        own = {name: value.replace(self.image.place(volume), str(self.data))
               for name, value in self.image.environment().items()}  # fmt: skip
        return own | {"TMPDIR": str(self.tmp)} | {name: str(value) for name, value in settings.items()}

    def is_healthy(self, **settings: object) -> bool:
        check = self.image.dockerfile.last(self.image.target, "HEALTHCHECK").nested().words()
        return self.image.run(check, **self.environment(settings)).returncode == 0


def container(image: Image, folder: Path) -> Container:
    require(is_possible(), "a kernel that lets unshare(1) make a read-only root")
    let_pass(image.venv)
    return Container(image, hand_over(folder / "data"), hand_over(folder / "tmp"))


def fetched(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - our own
        return answer.status, answer.read()


def files_below(folder: Path) -> dict[str, bytes]:
    found = [file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def test_a_confined_process_is_nobody_and_can_write_to_its_folder_only(tmp_path: Path) -> None:
    require(is_possible(), "a kernel that lets unshare(1) make a read-only root")
    own, other = hand_over(tmp_path / "own"), hand_over(tmp_path / "other")
    touch = "import os, sys; print(os.getuid()); open(sys.argv[1] + '/file', 'w')"
    allowed, refused = (
        subprocess.run(
            confined([sys.executable, "-c", touch, folder], own), capture_output=True, text=True, check=False
        )
        for folder in (own, other)
    )
    assert allowed.returncode == 0, allowed.stderr
    assert "Read-only file system" in refused.stderr
    assert int(allowed.stdout) in (USER, 0)  # 0 only in a namespace of the test's own user


@pytest.mark.parametrize("target", ["edge", "service"])
def test_the_user_of_an_image_is_the_one_that_is_tried_here(dockerfile: Dockerfile, target: str) -> None:
    assert dockerfile.last(target, "USER").text == f"{USER}:{USER}"


@pytest.mark.parametrize("target", ["edge", "service"])
def test_every_file_of_ours_is_in_the_wheel(request: pytest.FixtureRequest, target: str) -> None:
    image: Image = request.getfixturevalue(target)
    [installed] = (image.venv / "lib").glob("python*/site-packages")
    for package in PACKAGES:
        assert files_below(installed / package) == files_below(REPOSITORY / package)


def test_the_installed_pages_and_all_they_name_are_served(service: Image, tmp_path: Path) -> None:
    port = free_port()
    settings = {"ALARMCAST_PORT": port, "ALARMCAST_BROKER_PORT": free_port()}
    here = container(service, tmp_path)
    with here.running("serve", **settings):
        wait_until(lambda: here.is_healthy(**settings), "the service answers", 60)
        _, page = fetched(f"http://127.0.0.1:{port}/")
        named = set(NAMED_BY_A_PAGE.findall(page.decode()))
        assert {Path(name).suffix for name in named} >= {".css", ".js", ".svg"}
        for name in named:
            status, body = fetched(f"http://127.0.0.1:{port}{name}")
            assert (status, bool(body)) == (200, True), name
        for name, body in files_below(REPOSITORY / "service/page/static").items():
            assert fetched(f"http://127.0.0.1:{port}/static/{name}") == (200, body)


def test_an_agent_that_can_write_to_its_spool_only_is_healthy_exactly_while_it_is_connected(
    edge: Image, broker: DeployedBroker, tmp_path: Path
) -> None:
    here = container(edge, tmp_path)
    settings = {
        "ALARMCAST_EDGE_SITE": "padova",
        "ALARMCAST_EDGE_MACHINE": "filler-1",
        "ALARMCAST_EDGE_SOURCE_KIND": "simulated",
        "ALARMCAST_EDGE_BROKER_PORT": broker.port,
    }
    assert not here.is_healthy()
    with here.running("run", **settings):
        wait_until(here.is_healthy, "the health check passes")
        broker.stop()
        wait_until(lambda: not here.is_healthy(), "it fails when the broker is gone")
        broker.start()
        wait_until(here.is_healthy, "it passes again")
    assert not here.is_healthy()
    assert (here.data / "spool.sqlite3").is_file()
