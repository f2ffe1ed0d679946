"""Before the demo's curtain: machines registered, weeks of history loaded, a first model learned."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from service.bootstrap import Stores, open_stores, time_policy
from service.core.catalogue import parse_catalogue
from service.demo.plan import BACKLOG, HISTORY_DAYS, SEED, DemoMachine, Plan
from service.errors import TrainingFailed, Unavailable
from service.flows.load_history import load_history
from service.settings import Settings


def prepare(plan: Plan, settings: Settings, say: Callable[[str], None]) -> datetime:
    """Make the store ready and return the plant time at which the demo goes on.

    A store that a demo has used before goes on where it ended, with the machines it lacks added.
    """
    with open_stores(settings) as stores:
        stores.catalogue.merge(parse_catalogue(_catalogue()))
        last = stores.machines.latest_moment()
        start = max(last, datetime.now(UTC)) if last else datetime.now(UTC)
        known = {machine.id for machine in stores.machines.all()}
        new = [machine for machine in plan.fleet() if machine.id not in known]
        if new:
            say(f"Simulating {HISTORY_DAYS} days of history for {len(new)} machines …")
            _seed(stores, settings, plan, new, start)
        champion = stores.versions.champion()
    if champion is None:
        say("Learning a first model from it …")
        _learn(settings)
    return start


def _seed(stores: Stores, settings: Settings, plan: Plan, new: list[DemoMachine], start: datetime) -> None:
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
            stores.machines.add(machine.id, name=machine.name, time_zone=machine.time_zone, at=start)
            load_history(
                stores.machines.get(machine.id),
                log,
                serial=str(machine.index),
                zone=UTC,
                recorder=stores.events,
                now=start,
                policy=time_policy(settings),
            )


def _learn(settings: Settings) -> None:
    """Learn in a process of its own: the one that serves never loads torch."""
    command = [sys.executable, "-m", "service", "admin", "learn", "--data-dir", str(settings.data_dir)]
    try:
        _run(command, "learn a first model")
    except Unavailable as error:
        raise TrainingFailed(str(error)) from None


def _run(command: list[str], purpose: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own modules
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Unavailable(f"The demo could not {purpose}: {last}")


def _catalogue() -> str:
    return files("edge_agent.simulator").joinpath("catalogue.csv").read_text(encoding="utf-8")
