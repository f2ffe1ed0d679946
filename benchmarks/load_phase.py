"""A spell of a fleet's load on one host: who speaks how fast, and what everybody took meanwhile."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.observers import Answers, GridWatch, asking, watching
from benchmarks.servers import REPOSITORY, Serving, alarmcast, wait_until
from benchmarks.simulated_fleet import FleetReport, Orders
from benchmarks.synthetic_plant import SITES, Plant
from benchmarks.usage import Taken, child_named, counters, taken
from wire.clock import PlantClock

_HMIS = 20
_GATHER, _WARM_UP, SECONDS, _DRAIN = 2.0, 3.0, 14.0, 15.0  # seconds
_FIRST_REFRESH = 300.0  # seconds in which a service that has just started must have published every forecast
_CALM, _CALM_AFTER = 0.5, 120.0  # cores, and seconds after which it is measured however busy it is
_EVERYTHING = "service"
_STORED = ("stored", "late", "flagged")
SLOW_ACK = 2.0  # seconds after which an agent sends less at a time


@dataclass(frozen=True)
class Host:
    """What runs here: a broker, a database, and a service in one process or in several."""

    plant: Plant
    broker_port: int
    data_dir: Path
    database_url: str | None = None
    database_pid: int | None = None
    roles: tuple[str, ...] = ()  # one process for each; none is one process for everything
    crowds: int = 1

    @contextmanager
    def serving(self, clock: PlantClock) -> Iterator[Mapping[str, Serving]]:
        """Run the service's processes on a plant clock, each with a folder of its own but for the first."""
        environment = {
            "ALARMCAST_CLOCK_WALL_ORIGIN": clock.wall_origin.isoformat(),
            "ALARMCAST_CLOCK_PLANT_ORIGIN": (clock.plant_origin or clock.wall_origin).isoformat(),
            "ALARMCAST_CLOCK_SPEED": str(clock.speed),
            "ALARMCAST_INTEGRITY_CHECK": "off",  # a start is not what is measured here
            "ALARMCAST_REFRESH_DAYS": "0",
            "ALARMCAST_RETENTION_DAYS": "3650",
        }
        if self.database_url:
            environment["ALARMCAST_DATABASE_URL"] = self.database_url
        with ExitStack() as stack:
            services: dict[str, Serving] = {}
            for number, roles in enumerate(self.roles or (None,)):
                folder = self.data_dir if number == 0 else self.data_dir / f"process-{number}"
                folder.mkdir(exist_ok=True)
                own = environment if roles is None else environment | {"ALARMCAST_ROLES": roles}
                started = stack.enter_context(alarmcast(folder, self.broker_port, environment=own))
                services[_EVERYTHING if roles is None else f"{roles} {number}"] = started
            yield services


@dataclass(frozen=True)
class Running:
    """A service on its clock, in which every machine has a forecast."""

    host: Host
    clock: PlantClock
    services: Mapping[str, Serving]
    watch: GridWatch
    first_refresh: float

    @property
    def asked(self) -> Serving:
        """The process that answers people."""
        return next(one for name, one in self.services.items() if name == _EVERYTHING or "api" in name)

    def calm_down(self) -> None:
        """Wait until the service no longer catches up with its own start."""
        until = time.monotonic() + _CALM_AFTER
        while time.monotonic() < until:
            before = sum(taken(one.pid).cpu_seconds for one in self.services.values())
            time.sleep(2)
            if sum(taken(one.pid).cpu_seconds for one in self.services.values()) - before < 2 * _CALM:
                return

    def taken(self) -> dict[str, Taken]:
        """Return what every program has taken so far, by name."""
        pids = {"broker": child_named("mosquitto")} | {name: one.pid for name, one in self.services.items()}
        if self.host.database_pid:
            pids["database"] = self.host.database_pid
        return {name: taken(pid) for name, pid in pids.items()}


@contextmanager
def running(host: Host, clock: PlantClock) -> Iterator[Running]:
    """Start the service and wait until all machines have a forecast and what a start brings with it is done."""
    ids = host.plant.ids
    hmis = [ids[place] for place in np.linspace(0, len(ids) - 1, min(_HMIS, len(ids)), dtype=int)]
    began = time.monotonic()
    with watching(host.broker_port, hmis, clock) as watch, host.serving(clock) as services:
        wait_until(watch.refreshed, "every machine had a forecast", _FIRST_REFRESH)
        run = Running(host, clock, services, watch, time.monotonic() - began)
        run.calm_down()
        yield run


@dataclass(frozen=True)
class Spell:
    """What a spell was like. Rates are per wall second, cores are CPU seconds per wall second."""

    name: str
    alarms_a_day: float
    hurry: float
    since: float
    seconds: float
    offered: float
    committed: float
    acked: float
    states: float
    lag_p50: float
    lag_p99: float
    lag_at_the_end: float
    resent: int
    unacked: int
    crowd_behind: float
    crowd_cores: float
    passes: float
    pass_seconds: float
    refresh: float | None  # seconds from a moment of the grid in this spell until everybody had its forecasts
    rest_ms: dict[str, float | None]
    fleet_megabytes: float
    cores: dict[str, float]
    megabytes: dict[str, float]

    @property
    def wall(self) -> str | None:
        """What did not keep up, if anything."""
        if self.crowd_behind > SLOW_ACK / 2:
            return "the load generator, which came too late with its messages"
        if self.unacked or self.lag_at_the_end > SLOW_ACK:
            return "ingest, whose acks take longer than the two seconds after which agents step back"
        return None


@dataclass(frozen=True)
class Plan:
    """What a spell is to be like."""

    name: str
    alarms_a_day: float
    hurry: float = 1.0
    seconds: float = SECONDS
    page: bool = False  # whether the fleet page is open meanwhile
    until: Callable[[], object] = lambda: False  # it ends as soon as this holds


def measure(run: Running, plan: Plan, *, first_seq: int) -> Spell:
    """Let the crowd speak as planned, numbering its events from a number on, and measure after a warm-up."""
    begin = time.time() + _GATHER
    crowds = _crowds(run, plan, first_seq, begin)
    try:
        _sleep_until(begin + _WARM_UP)
        figures, counting = counters(run.services.values()), time.time()
        before, since = run.taken(), time.time()
        with asking(run.asked, run.host.plant.ids, page=plan.page) as answers:
            while time.time() < since + plan.seconds and not plan.until():
                time.sleep(min(0.2, max(0.0, since + plan.seconds - time.time())))
        after, took = run.taken(), time.time() - since
        counted = _difference(counters(run.services.values()), figures)
        counting = time.time() - counting  # longer than the spell: with many machines metrics take a while to tell
        spoken = _stopped(crowds)
    finally:
        for crowd in crowds:
            crowd.kill()
            crowd.wait()
    spoke = max(one.seconds for one in spoken)
    first = since - begin
    lags = _lags(spoken, first, first + took)
    return Spell(
        name=plan.name,
        alarms_a_day=plan.alarms_a_day,
        hurry=plan.hurry,
        since=since,
        seconds=took,
        offered=sum(one.offered for one in spoken) / spoke,
        committed=sum(counted[f"alarmcast_events_total{{{kind}}}"] for kind in ("stored", "late", "flagged"))
        / took,
        acked=len(lags) / took,
        states=sum(one.states for one in spoken) / spoke,
        lag_p50=_percentile(lags, 50),
        lag_p99=_percentile(lags, 99),
        lag_at_the_end=_percentile(_lags(spoken, first + 0.75 * took, first + took), 50),
        resent=sum(one.resent for one in spoken),
        unacked=sum(one.unacked for one in spoken),
        crowd_behind=max(one.behind for one in spoken),
        crowd_cores=sum(one.cpu_seconds for one in spoken) / spoke,
        passes=counted["alarmcast_forecast_duration_seconds_count"],
        pass_seconds=counted["alarmcast_forecast_duration_seconds_sum"],
        refresh=run.watch.refreshed_since(begin - _GATHER),
        rest_ms=_answered(answers),
        fleet_megabytes=answers.fleet_bytes / 1e6,
        cores={name: (after[name].cpu_seconds - before[name].cpu_seconds) / took for name in after},
        megabytes={name: one.megabytes for name, one in after.items()},
    )


def _crowds(run: Running, plan: Plan, first_seq: int, begin: float) -> list[subprocess.Popen[str]]:
    started = []
    for number in range(run.host.crowds):
        orders = Orders(
            port=run.host.broker_port,
            machines=run.host.plant.machines,
            sites=[f"plant-{site}" for site in range(SITES) if site % run.host.crowds == number],
            wall_origin=run.clock.wall_origin.isoformat(),
            plant_origin=(run.clock.plant_origin or run.clock.wall_origin).isoformat(),
            speed=run.clock.speed,
            alarms_a_day=plan.alarms_a_day,
            hurry=plan.hurry,
            first_seq=first_seq,
            begin=begin,
            warm_up=_WARM_UP,
            drain=_DRAIN,
            seed=first_seq + number,
        )
        command = [sys.executable, "-m", "benchmarks.simulated_fleet", orders.words()]
        started.append(
            subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
    return started


def _stopped(crowds: list[subprocess.Popen[str]]) -> list[FleetReport]:
    """Stop all simulated fleets at once, and return their reports after the last acks."""
    for crowd in crowds:
        if crowd.stdin:
            crowd.stdin.close()
    return [FleetReport(**json.loads(crowd.stdout.read())) for crowd in crowds if crowd.stdout]


def _lags(spoken: list[FleetReport], first: float, last: float) -> list[float]:
    """Return the lags of what was sent between two moments, in seconds since the crowd began."""
    return [lag for one in spoken for at, lag in one.lags if first <= at < last]


def _percentile(values: list[float], percent: float) -> float:
    return float(np.percentile(values, percent)) if values else 0.0


def _answered(answers: Answers) -> dict[str, float | None]:
    asked: dict[str, list[float]] = {
        "forecast": answers.forecast,
        "fleet": answers.fleet,
        "changes": answers.changes,
    }
    return {
        f"{name} p{percent}": 1000 * _percentile(took, percent) if took else None
        for name, took in asked.items()
        for percent in (50, 99)
    }


def _difference(after: Counter[str], before: Counter[str]) -> Mapping[str, float]:
    return Counter({name: value - before[name] for name, value in after.items()})


def _sleep_until(wall: float) -> None:
    time.sleep(max(0.0, wall - time.time()))
