"""Real servers for the tests: PostgreSQL and Mosquitto, each in a temporary directory on a free port."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings

from service.database.engine import Database
from tests.support.databases import new_postgresql, new_sqlite

settings.register_profile("no deadline", deadline=None)  # how long an example takes is the machine's business
settings.load_profile("no deadline")
WAIT_FACTOR = float(os.environ.get("WAIT_FACTOR", "1"))  # more on a machine that does much else
_SHARED_BY_A_FOLDER = ("page", "deploy")  # a stage with a browser, and images that were built
_LONGEST_FIRST = ("page", "deploy", "system", "faults")  # so that no long group is left for the end


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests that share something costly to one process, where several run them side by side."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        group = folder if folder in _SHARED_BY_A_FOLDER else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: _place(item.path))


def _place(path: Path) -> int:
    folder = path.relative_to(Path(__file__).parent).parts[0]
    return _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)


def require(found: object, what: str) -> None:
    """Skip loudly where a component is missing, and fail where it must not be."""
    if found:
        return
    message = f"{what} is not installed; scripts/test installs it where it may"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Poll until something holds; the time is a bound on waiting for a failure, never a hope."""
    deadline = time.monotonic() + seconds * WAIT_FACTOR
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds} s in vain until {what}")
        time.sleep(0.02)


@dataclass
class Mosquitto:
    """A real broker that a test may kill and start again, on the same port and with the same memory."""

    folder: Path
    port: int = field(default_factory=free_port)
    extra: str = ""
    anonymous: bool = True
    process: subprocess.Popen[bytes] | None = None

    def configure(self) -> Path:
        """Write the configuration, and return where it is."""
        config = self.folder / "mosquitto.conf"
        config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous {str(self.anonymous).lower()}\npersistence true\n"
            f"persistence_location {self.folder}/\nmax_inflight_messages 0\nmax_queued_messages 0\n{self.extra}"
        )
        return config

    def start(self) -> None:
        config = self.configure()
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        log = (self.folder / "mosquitto.log").open("ab")
        with log:
            self.process = subprocess.Popen([program, "-c", str(config)], stdout=log, stderr=log)
        wait_until(self._answers, "mosquitto answers")

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def save(self) -> None:
        """Let it write its memory to disk, as it does every half hour."""
        if self.process:
            before = self._saved_at()
            self.process.send_signal(signal.SIGUSR1)
            wait_until(lambda: self._saved_at() != before, "mosquitto has saved its memory")

    def _saved_at(self) -> int:
        memory = self.folder / "mosquitto.db"
        return memory.stat().st_mtime_ns if memory.exists() else 0

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def broker_in(folder: Path) -> Mosquitto:
    """Return a broker that keeps its memory in a new folder; not started yet."""
    folder.mkdir()
    if os.getuid() == 0:
        folder.chmod(0o777)
    return Mosquitto(folder, extra="user root\n" if os.getuid() == 0 else "")


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    require(shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists(), "mosquitto")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    broker = broker_in(tmp_path / "mosquitto")
    broker.start()
    yield broker
    broker.kill()


def postgresql_programs() -> Path | None:
    """Return the folder of PostgreSQL's server programs, the newest there are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def postgresql_server(programs: Path) -> Iterator[str]:
    """Run a cluster of its own; yields the URL of its first database."""
    folder = Path(mkdtemp(prefix="alarmcast-pg-"))
    user = "postgres" if os.getuid() == 0 else None  # the server refuses to run as root
    if user:
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
    data, port = folder / "data", free_port()
    initdb: list[str | Path] = [programs / "initdb", "-D", data]
    initdb += ["-A", "trust", "-U", "alarmcast", "--no-sync", "-E", "UTF8"]
    subprocess.run(initdb, user=user, cwd=folder, check=True, capture_output=True)
    options = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
    options += ["-c", "max_connections=300", "-c", "full_page_writes=off", "-c", "wal_level=minimal"]
    options += ["-c", "max_wal_senders=0"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-p", str(port), *options],
            user=user,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    ready: list[str | Path] = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-q"]
    try:
        wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, "PostgreSQL answers")
        yield f"postgresql+psycopg://alarmcast@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # the fast way: it need not wait for whoever is connected
        server.wait(timeout=20)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """A cluster of its own; yields the URL of its first database."""
    programs = postgresql_programs()
    require(programs, "PostgreSQL's server (initdb, postgres)")
    assert programs
    with postgresql_server(programs) as url:
        yield url


@pytest.fixture
def new_postgresql_url(postgresql: str) -> Iterator[str]:
    """The URL of an empty, upgraded PostgreSQL database of this test alone."""
    with new_postgresql(postgresql) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty, upgraded database of each engine; for tests of SQL that differs between them, and of locks."""
    if request.param == "sqlite":
        opened = Database(new_sqlite(tmp_path / "alarmcast.sqlite3"))
    else:
        opened = Database(request.getfixturevalue("new_postgresql_url"))
    yield opened
    opened.close()


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    """An empty, upgraded SQLite database; for tests of SQL that is the same on both engines."""
    opened = Database(new_sqlite(tmp_path / "alarmcast.sqlite3"))
    yield opened
    opened.close()
