"""Before the demo's curtain: machines enrolled, weeks of history loaded."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from service.app.configuration import time_policy
from service.app.stores import Stores, open_stores
from service.demo.plan import BACKLOG, HISTORY_DAYS, SEED, DemoMachine, Plan
from service.errors import Unavailable
from service.learning.history_file import ImportFile
from service.learning.history_import import load_history
from service.learning.models import NewMachine
from service.machines.catalogue import parse_catalogue
from service.settings import Settings


def prepare(plan: Plan, settings: Settings, say: Callable[[str], None]) -> datetime:
    """Make the store ready and return the plant time at which the demo goes on.

    A store that a demo has used before goes on where it ended, with the machines it lacks added.
    """
    with open_stores(settings) as stores:
        last = stores.machines.latest_moment()
        start = max(last, datetime.now(UTC)) if last else datetime.now(UTC)
        known = {machine.id for machine in stores.machines.all(retired=True)}
        new = [machine for machine in plan.fleet() if machine.id not in known]
        if new:
            say(f"Simulating {HISTORY_DAYS} days of history for {len(new)} machines …")
            _seed(stores, settings, plan, new, start)
    return start


def _seed(stores: Stores, settings: Settings, plan: Plan, new: list[DemoMachine], start: datetime) -> None:
    """Enrol the machines with their past; the running service then learns them one after the other."""
    stores.catalogue.merge(parse_catalogue(_catalogue()))
    with TemporaryDirectory() as folder:
        log = Path(folder) / "history.csv"
        options = {
            "--machines": plan.machines,
            "--days": HISTORY_DAYS,
            "--seed": SEED,
            "--end": (start - BACKLOG).isoformat(),
            "--out": log,
        }
        flags = [str(part) for option in options.items() for part in option]
        _run([sys.executable, "-m", "edge_agent", "simulate", *flags], "simulate the fleet's history")
        for machine in new:
            wish = NewMachine(machine.id, machine.name, machine.time_zone)
            stores.enrolments.enrol(wish, key=None, who="demo", at=datetime.now(UTC), plant_at=start)
            load_history(
                stores.machines.get(machine.id),
                ImportFile(log, serial=str(machine.index)),
                recorder=stores.events,
                now=start,
                policy=time_policy(settings),
            )


def _run(command: list[str], purpose: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own modules
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Unavailable(f"The demo could not {purpose}: {last}")


def _catalogue() -> str:
    return files("edge_agent.simulator").joinpath("catalogue.csv").read_text(encoding="utf-8")
