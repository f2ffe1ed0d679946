"""``alarmcast admin copy-database`` as it is typed: killed again and again, refused, and done."""

import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import insert, select, text

from service.database.backup import DATABASE
from service.database.engine import Database
from service.database.tables import epochs, events, machines
from tests.conftest import wait_until
from tests.system.conftest import Process, clean_environment

EVENTS = 200_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a store of many events."""
    folder = tmp_path / "data"
    folder.mkdir()
    database = Database(f"sqlite:///{folder / DATABASE}")
    database.upgrade()
    filler = {"site": "padova", "machine": "filler-1", "name": "Filler", "time_zone": "UTC", "registered_us": 1}
    row = {"epoch_id": 1, "machine_id": 1, "code": 7, "received_us": 1, "flag": 0}
    with database.write() as connection:
        connection.execute(insert(machines).values(filler))
        connection.execute(insert(epochs).values(machine_id=1, epoch=uuid4()))
        connection.execute(insert(events), [row | {"seq": seq, "at_us": 10**7 * seq} for seq in range(EVENTS)])
    database.close()
    return folder


@pytest.fixture
def target(postgresql: str) -> str:
    database = Database(postgresql)
    name = f"copy_{uuid4().hex}"
    with database.read() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text(f"CREATE DATABASE {name}"))
    database.close()
    return postgresql.rpartition("/")[0] + f"/{name}"


def seqs(url: str) -> list[int]:
    database = Database(url)
    with database.read() as connection:
        found = list(connection.execute(select(events.c.seq).order_by(events.c.seq)).scalars())
    database.close()
    return found


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "service", "admin", "copy-database", *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, env=clean_environment()
    )


def test_a_copy_that_is_killed_again_and_again_goes_on_and_is_whole_in_the_end(
    data: Path, target: str, tmp_path: Path
) -> None:
    reached = [killed(command(data, target), tmp_path, share) for share in (0.1, 0.4, 0.7)]
    assert reached == sorted(set(reached)), "each went on from where the one before it was"
    assert reached[-1] < EVENTS, "killed before its end"
    done = run(data, target)
    assert done.returncode == 0, done.stderr
    found = re.match(r"(\d+) rows were already there", last_lines(done)[0])
    assert found
    assert int(found[1]) >= reached[-1]
    assert last_lines(done)[1].startswith(f"{EVENTS + 2} rows copied to postgresql://127.0.0.1:")
    assert seqs(target) == list(range(EVENTS))
    again = run(data, target)
    assert again.returncode == 2
    (sentence,) = again.stderr.splitlines()
    assert "A copy needs an empty" in sentence


def killed(copy: list[str], folder: Path, share: float) -> int:
    """Kill a copy once it has brought this share of the events, and return how many it says it has."""
    copying = Process(copy, folder / f"copy-{share}.log")
    copying.start()
    wait_until(lambda: copied(copying) >= share * EVENTS, "so much is copied")
    copying.kill()
    return copied(copying)


def copied(copying: Process) -> int:
    """Return how many events a copy says it has written."""
    return max(map(int, re.findall(r"Copying events: (\d+) of", copying.words())), default=0)


def last_lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stdout.splitlines()[-2:]
