"""Real servers, each on a free port of loopback in a temporary directory, ended by its own process id."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

HOST = "127.0.0.1"
REPOSITORY = Path(__file__).parents[1]


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def python(module: str, *words: object) -> list[object]:
    """Return the command that runs a module of this repository."""
    return [sys.executable, "-m", module, *words]


def wait_until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Poll until something holds; raise if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain until {what}")
        time.sleep(0.01)


@contextmanager
def process(
    command: Sequence[object], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program from the repository; ask it to end when done, and insist after five seconds."""
    words, more = [str(part) for part in command], os.environ | dict(environment or {})
    with log.open("ab") as output:
        started = subprocess.Popen(words, cwd=REPOSITORY, stdout=output, stderr=output, env=more)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(timeout=5)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def mosquitto() -> Iterator[int]:
    """Run a broker that queues without end for a slow subscriber; yields its port."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    port = free_port()
    with TemporaryDirectory(prefix="alarmcast-mosquitto-") as folder:
        config = Path(folder) / "mosquitto.conf"
        config.write_text(
            f"listener {port} {HOST}\nallow_anonymous true\npersistence true\npersistence_location {folder}/\n"
            "max_inflight_messages 0\nmax_queued_messages 0\n" + ("user root\n" if os.getuid() == 0 else ""),
            encoding="utf-8",
        )
        with process([program, "-c", config], Path(folder) / "log"):
            wait_until(lambda: listens(port), "mosquitto listens", 20)
            yield port


@dataclass(frozen=True)
class Serving:
    """A running service."""

    pid: int
    port: int
    data_dir: Path

    @property
    def key(self) -> str:
        """The key that the service left for those who may read its folder."""
        return (self.data_dir / "admin.token").read_text(encoding="ascii").strip()


@contextmanager
def alarmcast(
    data_dir: Path,
    broker_port: int,
    *,
    command: Sequence[str] = ("service", "serve"),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Serving]:
    """Run ``alarmcast serve``, or another module that takes its flags, until it says that it is ready."""
    port = free_port()
    flags = ["--data-dir", data_dir, "--port", port, "--broker-port", broker_port]
    module, *words = command
    log = data_dir / "service.log"
    with process(python(module, *words, *flags), log, environment) as started:
        serving = Serving(started.pid, port, data_dir)

        def ready() -> bool:
            if started.poll() is not None:
                raise RuntimeError(f"the service ended: {log.read_text(encoding='utf-8')[-2000:]}")
            return listens(port) and _says_ready(port)

        wait_until(ready, "the service is ready")
        yield serving


def _says_ready(port: int) -> bool:
    """Ask without a client that reads certificates first: so that the check does not delay the start."""
    connection = HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    finally:
        connection.close()


def listens(port: int) -> bool:
    """Return whether a port accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
