"""A fleet of thousands of machines against one host: what it costs, and what gives way first.

``python -m benchmarks.fleet --machines 10000`` runs a real broker and a real service on a database in which every
machine has a month of alarms, and lets all of them speak: first as they do, then in a plant whose clock runs
faster, twice as fast each time, until something does not keep up. A fleet at speed 30 asks for as much work as
thirty such fleets. The machines are simulated by few processes (``benchmarks.crowd``), not by as many agents.
"""

import argparse
import json
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich.console import Console

from benchmarks.costs import costs
from benchmarks.fleet_report import shown
from benchmarks.footprint import footprint
from benchmarks.onlookers import set_clock
from benchmarks.plant import ALARMS_A_DAY, CODES, Plant, settle
from benchmarks.servers import mosquitto
from benchmarks.spell import Host, Spell, measure, running
from benchmarks.usage import database_server
from service.bootstrap.configuration import load_settings
from service.bootstrap.stores import open_stores

_BUSY = 10  # times as many alarms: what differs then is what events cost
_SEQS_A_SPELL = 1_000_000


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
        spells = _spells(host, options.speed, options.fastest, began)
    result = {
        "machines": plant.machines,
        "events_before": plant.events,
        "database": "PostgreSQL" if options.database_url else "SQLite",
        "roles": options.roles,
        "spells": [asdict(one) | {"wall": one.wall} for one in spells],
        "costs": asdict(costs(spells, plant.machines)),
        "bytes": asdict(footprint()),
        "seconds": round(monotonic() - began, 1),
    }
    Console().print(*shown(result), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _spells(host: Host, speed: float, fastest: float, began: float) -> list[Spell]:
    """Measure the fleet as it is, faster, faster with many more alarms, and then ever faster."""
    usual = host.plant.alarms_a_day
    plans = [(1.0, [("as it is", usual)]), (speed, [("faster", usual), ("many alarms", _BUSY * usual)])]
    plans += [(speed * 2**step, [("faster", usual)]) for step in range(1, 12) if speed * 2**step <= fastest]
    spells: list[Spell] = []
    plant_now = datetime.now(UTC)
    for pace, named in plans:
        with running(host, clock := set_clock(plant_now, pace)) as run:
            for name, alarms in named:
                first_seq = (len(spells) + 1) * _SEQS_A_SPELL
                spells.append(measure(run, name, alarms_a_day=alarms, first_seq=first_seq))
                _say(f"speed {pace:g}, {name}: {spells[-1].wall or 'keeps up'}", began)
        plant_now = clock.now()
        if spells[-1].wall and len(spells) > 3:
            break
    return spells


def _say(what: str, began: float) -> None:
    Console(stderr=True).print(f"{monotonic() - began:5.0f} s  {what}", highlight=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--alarms-a-day", type=float, default=ALARMS_A_DAY, help="of each machine")
    parser.add_argument("--days", type=float, default=30.0, help="of alarms that are stored already")
    parser.add_argument("--codes", type=int, default=CODES)
    parser.add_argument("--speed", type=float, default=30.0, help="of the plant's clock, to begin with")
    parser.add_argument("--fastest", type=float, default=2000.0, help="where to stop if nothing gives way")
    parser.add_argument("--database-url", help="an empty PostgreSQL database; SQLite unless given")
    parser.add_argument("--roles", nargs="*", help="a process for each, such as api ingest worker")
    parser.add_argument("--crowds", type=int, default=1, help="processes that speak for the machines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


if __name__ == "__main__":
    main()
