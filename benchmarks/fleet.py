"""A fleet of thousands of machines against one host: what it costs, and what gives way first.

``python -m benchmarks.fleet --machines 10000`` runs a real broker and a real service on a database in which every
machine has a month of alarms. All machines speak: as they do, then with many more alarms, then while a page of the
fleet is open, then while everybody's forecast falls due, then ever more often, twice as often each time, until
acks come too late. They are simulated by few processes (``benchmarks.simulated_fleet``), not by as many agents.
"""

import argparse
import itertools
import json
from collections import deque
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich.console import Console

from benchmarks.cost_figures import costs
from benchmarks.fleet_report import shown
from benchmarks.footprint import footprint
from benchmarks.load_phase import Host, Plan, Running, Spell, measure, running
from benchmarks.observers import GRID, set_clock
from benchmarks.servers import mosquitto
from benchmarks.synthetic_plant import ALARMS_A_DAY, CODES, Plant, settle
from benchmarks.usage import database_server
from forecasting.window import grid_floor
from service.app.configuration import load_settings
from service.app.stores import open_stores

_BUSY = 50  # times as many alarms: what differs then is what events cost
_REFRESH_AT_MOST = 240.0  # seconds to wait until a refresh has come and is over
_SOON = 35.0  # seconds to a refresh in which no other spell is begun
_WIDTH = 170  # characters, for a column each spell
_SEQS = 1_000_000  # of a machine in a spell, at most


def main() -> None:
    """Settle, measure, print, and write JSON if asked to."""
    options = _options()
    began = monotonic()
    plant = Plant(options.machines, options.alarms_a_day, options.days, options.codes)
    with TemporaryDirectory(prefix="alarmcast-fleet-") as folder, ExitStack() as stack:
        settings = load_settings(data_dir=Path(folder), database_url=options.database_url)
        with open_stores(settings) as stores:
            settle(stores, plant, datetime.now(UTC))
            server = database_server(stores.database)
        _say(f"{plant.machines:,} machines with {plant.events:,} alarms are settled", began)
        port = stack.enter_context(mosquitto())
        host = Host(
            plant, port, Path(folder), options.database_url, server, tuple(options.roles or ()), options.crowds
        )
        clock = set_clock(_before_the_grid(options.grid_after or 100 + 0.006 * plant.machines), 1.0)
        with running(host, clock) as run:
            _say(f"every machine has a forecast {run.first_refresh:.0f} s after the start", began)
            spells = _spells(run, options.most_hurry, began)
    result = {
        "machines": plant.machines,
        "events_before": plant.events,
        "database": "PostgreSQL" if options.database_url else "SQLite",
        "roles": options.roles,
        "first_refresh": run.first_refresh,
        "spells": [asdict(one) | {"wall": one.wall} for one in spells],
        "costs": asdict(costs(spells, plant.machines)),
        "bytes": asdict(footprint()),
        "seconds": round(monotonic() - began, 1),
    }
    Console(width=_WIDTH).print(*shown(result), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _spells(run: Running, most_hurry: float, began: float) -> list[Spell]:
    usual = run.host.plant.alarms_a_day
    hurries = itertools.takewhile(lambda hurry: hurry <= most_hurry, (2.0**power for power in itertools.count(3)))
    refresh = Plan("a refresh", usual, seconds=_REFRESH_AT_MOST, until=run.watch.is_over)
    waiting = deque(
        [
            Plan("usual", usual),
            Plan("many alarms", _BUSY * usual),
            Plan("an open page", usual, page=True),
            refresh,
            *(Plan(f"{hurry:g} x as often", usual, hurry) for hurry in hurries),
        ]
    )
    spells: list[Spell] = []
    while waiting:
        plan = refresh if refresh in waiting and run.watch.until_next() < _SOON else waiting[0]
        waiting.remove(plan)
        spells.append(measure(run, plan, first_seq=(len(spells) + 1) * _SEQS))
        _say(f"{plan.name}: {spells[-1].wall or 'everything keeps up'}", began)
        if spells[-1].wall and plan.hurry > 1:
            break
    return spells


def _before_the_grid(seconds: float) -> datetime:
    """Return the plant time that makes a moment of the grid fall due so many seconds from now."""
    now = datetime.now(UTC)
    return grid_floor(now, GRID) + GRID - timedelta(seconds=seconds)


def _say(what: str, began: float) -> None:
    Console(stderr=True).print(f"{monotonic() - began:5.0f} s  {what}", highlight=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--alarms-a-day", type=float, default=ALARMS_A_DAY, help="of each machine")
    parser.add_argument("--days", type=float, default=30.0, help="of alarms that are stored already")
    parser.add_argument("--codes", type=int, default=CODES)
    parser.add_argument("--grid-after", type=float, metavar="SECONDS", help="until forecasts fall due")
    parser.add_argument("--most-hurry", type=float, default=256.0, help="where to stop if nothing gives way")
    parser.add_argument("--database-url", help="an empty PostgreSQL database; SQLite unless given")
    parser.add_argument("--roles", nargs="*", help="a process for each, such as api ingest worker")
    parser.add_argument("--crowds", type=int, default=1, help="processes that speak for the machines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


if __name__ == "__main__":
    main()
