"""Restores a backup over a store and is killed before each step in turn; says what the next start finds.

Run as ``python -m tests.service.database.killed_restore DATA BACKUP WORK``: a process without threads, so that it
may
fork. It prints a line of JSON for each step: what was killed, and what is in its place after the next start.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.database.backup import DATABASE, restore

# What Python tells its audit hooks before it does it; each changes what is on disk, or may.
STEPS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree"}


def run_and_kill(act: Callable[[], object], *, at: int, within: Path) -> bool:
    """Act in a process that is killed before its n-th step within a folder; return whether it was."""
    child = os.fork()
    if child == 0:
        left = at

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in STEPS and str(arguments[0]).startswith(str(within)):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        act()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"step {at} failed")
    return False


def machines(database: Path) -> int | None:
    """Return how many machines a database holds, None if there is no database."""
    if not database.exists():
        return None
    with closing(sqlite3.connect(database)) as opened:
        return int(opened.execute("SELECT count(*) FROM machines").fetchone()[0])


def main(saved: Path, backup: Path, work: Path) -> None:
    """Kill a restore before every step, and the start after it before one of its own steps as well."""
    data = work / "data"

    def start() -> None:
        with open_stores(load_settings(data_dir=data)):
            pass

    step, killed = 0, True
    while killed:
        step += 1
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(saved, data)
        killed = run_and_kill(lambda: restore(backup, data), at=step, within=data)
        again = run_and_kill(start, at=1 + step % 12, within=data)
        start()
        asides = [machines(folder / DATABASE) for folder in data.glob("before-restore-*")]
        left = sorted(name for name in ("restoring", "restore.json") if (data / name).exists())
        found = {"killed": killed, "again": again, "place": machines(data / DATABASE), "asides": asides}
        print(json.dumps(found | {"left": left}), flush=True)  # noqa: T201 - its answer


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
