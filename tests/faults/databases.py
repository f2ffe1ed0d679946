"""A database that is locked, damaged, copied under load and restored."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.conftest import wait_until
from tests.faults.environment import FaultEnvironment, LoadedSystem, insist
from tests.faults.registry import Effort, fault

_PAGE = 4096


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the write lock of a database, as a careless tool would."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@fault("database locked", quick=Effort(1, seconds=33), full=Effort(5, seconds=33))
def locked(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """Another program holds the database's lock for longer than we wait; nothing is acked meanwhile."""
    with env.system() as system:
        system.recovered()
        for _ in range(effort.runs):
            with held(system.plant.data / "alarmcast.sqlite3"):
                before = system.stored()
                time.sleep(effort.seconds)
                insist(system.stored() == before, "nothing is stored while the database is locked")
                acked = sum(len(system.plant.left_the_spool(machine)) for machine in system.agents)
                insist(acked <= sum(before.values()), "nothing is acked that is not committed")
            yield system.recovered()


@fault("damaged page, backup under load, restore", quick=Effort(1), full=Effort(5))
def damaged(env: FaultEnvironment, effort: Effort) -> Iterator[float]:
    """A backup is made under load, pages are destroyed, the service refuses to start, the backup helps."""
    for _ in range(effort.runs):
        with env.system(judged=False) as system:
            yield _destroyed_and_restored(env, system)


def _destroyed_and_restored(env: FaultEnvironment, system: LoadedSystem) -> float:
    plant, backup = system.plant, system.plant.folder / "backup"
    system.recovered()
    made = plant.admin("backup", str(backup))
    insist(made.returncode == 0, f"a backup can be made under load: {made.stderr}")
    system.recovered()
    plant.service.stop()
    _destroy(plant.data / "alarmcast.sqlite3")
    plant.service.start()
    insist(plant.service.running and plant.service.running.wait(30) != 0, "damage is noticed at the start")
    insist("alarmcast admin restore" in plant.service.words(), "the way back is told")
    restored = plant.admin("restore", str(backup))
    insist(restored.returncode == 0, f"a backup can be restored: {restored.stderr}")
    for machine in system.agents:
        codes = [code for _, code in plant.stored(machine)]
        insist(codes, "a backup under load is not empty")
        insist(codes == list(range(len(codes))), "what is restored is a prefix of what was raised")
    # What was acked after the backup has left the spools for good; all the rest must arrive.
    since = {machine: max(plant.left_the_spool(machine), default=0) for machine in system.agents}
    plant.start_service()
    started = time.monotonic()
    system.load.stop()

    def drained() -> bool:
        taken = all(plant.given(machine) == written for machine, written in system.load.written.items())
        return taken and all(plant.spooled(machine) == 0 for machine in system.agents)

    wait_until(drained, "all drain", 60)
    took = time.monotonic() - started
    for machine, first in since.items():
        stored = [code for _, code in plant.stored(machine)]
        wanted = set(range(first, system.load.written[machine]))  # number n carries code n - 1
        env.tally.events += system.load.written[machine]
        env.tally.lost += len(wanted - set(stored))
        env.tally.duplicated += len(stored) - len(set(stored))
    return took


def _destroy(path: Path) -> None:
    """Overwrite the pages of the second half of a database file with noise."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = path.stat().st_size // _PAGE
    with path.open("r+b") as file:
        for page in range(pages // 2, pages):
            file.seek(page * _PAGE)
            file.write(b"\xa5" * _PAGE)
