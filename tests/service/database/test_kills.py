"""Killed in the middle of writing: a migration and a copy of a database end as they were, or whole."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from service.database.backup import DATABASE
from service.database.copy import copy_database
from service.database.copy_endpoint import open_endpoint
from service.database.engine import Database
from service.errors import WrongSchema
from tests.conftest import require
from tests.support.sample_database import INITIAL, fill, next_schema
from tests.system.conftest import clean_environment

WRITES = "pwrite64,fsync,fdatasync,rename,unlink,ftruncate"
UPGRADE = """
import sys
from pathlib import Path
from service.database.engine import Database
Database(sys.argv[1]).upgrade(Path(sys.argv[2]))
"""
COPY = """
import sys
from service.database.copy import copy_database
from service.database.copy_endpoint import open_endpoint
with open_endpoint(sys.argv[1]) as source, open_endpoint(sys.argv[2]) as target:
    copy_database(source, target, on_progress=lambda *_: None)
"""


def strace(tmp_path: Path, *options: str, program: str, arguments: tuple[Path | str, ...]) -> int:
    require(shutil.which("strace"), "strace")
    command = ["strace", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", f"trace={WRITES}", *options]
    command += [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, env=clean_environment()).returncode


def writes(tmp_path: Path, program: str, *arguments: Path | str) -> list[str]:
    """Run a program to its end and return its writes, each with the name of its file."""
    assert strace(tmp_path, "-y", program=program, arguments=arguments) == 0
    return (tmp_path / "trace").read_text(encoding="utf-8").splitlines()


def kill_at(tmp_path: Path, number: int, program: str, *arguments: Path | str) -> None:
    """Run a program and kill it at its n-th write; the number of the last ones is not always the same."""
    option = f"inject={WRITES}:signal=SIGKILL:when={number}"
    strace(tmp_path, "-e", option, program=program, arguments=arguments)


def spread(total: int, points: int) -> list[int]:
    """Return moments from the first write to the last one but one."""
    return sorted({1 + (total - 1) * place // points for place in range(points)})


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder with a database of the initial schema and rows in it."""
    folder = tmp_path / "sample"
    folder.mkdir()
    database = Database(f"sqlite:///{folder / DATABASE}")
    with database.write() as connection:
        fill(connection, folder / "weights")
    database.close()
    return folder


def rows(file: Path) -> dict[str, int]:
    with closing(sqlite3.connect(file)) as found:
        return {
            table: found.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our names
            for table in ("machines", "events", "gaps", "catalogue", "model_versions", "forecasts")
        }


def test_a_migration_that_is_killed_at_any_write_leaves_one_of_the_two_schemas_and_every_row(
    sample: Path, tmp_path: Path
) -> None:
    work, scripts = tmp_path / "work", next_schema(tmp_path)
    url, before = f"sqlite:///{work / DATABASE}", rows(sample / DATABASE)
    shutil.copytree(sample, work)
    total = len(writes(tmp_path, UPGRADE, url, scripts))
    newest, seen = rows(work / DATABASE), set()
    for number in spread(total, 6):
        shutil.rmtree(work)
        shutil.copytree(sample, work)
        kill_at(tmp_path, number, UPGRADE, url, scripts)
        database = Database(url)
        found = database.schema(scripts)
        seen.add(found.found)
        assert found.found in {INITIAL, found.wanted}
        assert rows(work / DATABASE) == before
        database.upgrade(scripts)
        database.check(thorough=True)
        assert database.schema(scripts).is_current
        database.close()
        assert rows(work / DATABASE) == newest
    assert INITIAL in seen, "some were killed before the end"


def test_a_copy_that_is_killed_at_any_write_is_no_database_yet_and_is_whole_when_it_is_made_again(
    sample: Path, tmp_path: Path
) -> None:
    source, target = sample, tmp_path / "copy"
    Database(f"sqlite:///{source / DATABASE}").upgrade()
    trace = writes(tmp_path, COPY, source, target)
    log = f"{target / DATABASE}-wal"
    commits = [place for place, line in enumerate(trace, 1) if "sync(" in line and log in line]
    found = []
    for number in (commits[0] - 9, *(commits[place * len(commits) // 5] for place in range(5))):
        shutil.rmtree(target)
        kill_at(tmp_path, number, COPY, source, target)
        found.append(state(target / DATABASE))
        if found[-1] != "whole":  # killed after its last commit
            with open_endpoint(str(source)) as original, open_endpoint(str(target)) as copy:
                copy_database(original, copy, on_progress=lambda *_: None)
        assert state(target / DATABASE) == "whole"
        assert rows(target / DATABASE) == rows(source / DATABASE)
        names = {file.name for file in (source / "weights").iterdir()}
        assert {file.name for file in (target / "weights").iterdir()} >= names
    assert set(found) <= {"empty", "unfinished", "whole"}, "never a part that a service would take for the whole"
    assert found.count("unfinished") >= 2, "some were killed while rows were copied"


def state(file: Path) -> str:
    """Say what a service would take a database for."""
    if not file.exists():
        return "empty"
    database = Database(f"sqlite:///{file}")
    try:
        if database.schema().found is None:
            return "empty"
    except WrongSchema as error:
        return "unfinished" if "has not ended. Give the same command again" in str(error) else str(error)
    finally:
        database.close()
    return "whole" if sum(rows(file).values()) else "empty"
