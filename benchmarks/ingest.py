"""Durable ingest, commit before ack: against only counting the messages, and against a bulk insert.

The whole load waits in the broker before the clock starts: the subscriber connects, is stopped (SIGSTOP), the
load is queued for it, it is let go (SIGCONT), and the drain is timed. So the load generator costs nothing while
anything is measured, and the service and the counter that is its limit find the very same queue, each at a
broker started afresh so that no session of another round waits in it. The service's clock runs until an agent's
side has seen acks that name every event, which is stricter than rows committed, as an ack follows its commit;
the rows are counted afterwards all the same.
"""

import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil
from sqlalchemy import func, select

from benchmarks.broker_observer import listening
from benchmarks.inserts import inserting
from benchmarks.load import Load
from benchmarks.report import ROUNDS, Figure, run
from benchmarks.seeded_store import prepare
from benchmarks.servers import alarmcast, mosquitto, process
from benchmarks.subscriber_baseline import TOPIC
from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.database.engine import Database
from service.database.tables import events
from wire.topics import Channel, every_machine

_BATCH = 1000
_AT_MOST = 120  # seconds a drain may take
_PLANT = 50  # agents: the row of the table; the others stand beside it
_AGENTS = (1, 50, 500)
_MESSAGES = {1: 40_000, 50: 10_000}  # by events a message: seconds, of which first forecasts are a small part
_GOALS = {1: 0.7, 50: 0.35}
_LIMITS = {
    1: "the same paho subscriber only counting",
    50: "`sqlite3.executemany` of the same rows, batches of 1000",
}


class Drained(NamedTuple):
    """How fast a load was committed and acked, and what it took."""

    events_per_second: float
    cpu_seconds: float
    megabytes: float


def measure(rounds: int) -> list[Figure]:
    """Measure every number of events a message and of agents; ours and the limit take turns."""
    return [_measured(size, rounds) for size in _MESSAGES]


def _measured(size: int, rounds: int) -> Figure:
    loads = {
        agents: Load(messages=_MESSAGES[size], events_per_message=size, machines=agents) for agents in _AGENTS
    }
    limits: list[float] = []
    stock: list[float] = []
    ours: dict[int, list[Drained]] = {agents: [] for agents in _AGENTS}
    for _ in range(rounds):
        limits.append(_limit(loads[_PLANT]))
        if size == 1:
            stock.append(loads[_PLANT].events / counting(loads[_PLANT], "stock"))
        for agents, load in loads.items():
            ours[agents].append(ingesting(load))
    events = "1 event" if size == 1 else f"{size} events"
    beside = {
        f"{agents} agent{'s' * (agents > 1)}": [
            one.events_per_second / limit for one, limit in zip(drained, limits, strict=True)
        ]
        for agents, drained in ours.items()
        if agents != _PLANT
    }
    drained = ours[_PLANT]
    if stock:
        beside["against paho's own client"] = [
            one.events_per_second / limit for one, limit in zip(drained, stock, strict=True)
        ]
    beside["CPU µs an event"] = [1e6 * one.cpu_seconds / loads[_PLANT].events for one in drained]
    beside["RSS MB"] = [one.megabytes for one in drained]
    name = f"ingest, committed and acked, {events} a message, {_PLANT} agents"
    rates = [one.events_per_second for one in drained]
    return Figure(name, _LIMITS[size], "events/s", limits, rates, _GOALS[size], beside=beside)


def _limit(load: Load) -> float:
    alone = load.events_per_message == 1
    return load.events / (counting(load) if alone else inserting(load.rows(), batch=_BATCH))


def counting(load: Load, *how: str) -> float:
    """Return the seconds in which the counter drains the load."""
    with TemporaryDirectory() as folder, mosquitto() as port, listening(port, TOPIC) as listener:
        command = [sys.executable, "-m", "benchmarks.subscriber_baseline", port, load.messages, *how]
        with process(command, Path(folder) / "log") as counter:
            listener.next(20)
            started = _queue_then_go(counter.pid, load, port)
            finished, _ = listener.next(_AT_MOST)
    return finished - started


def ingesting(load: Load) -> Drained:
    """Let ``alarmcast serve`` commit and ack the load, starting with no events."""
    with TemporaryDirectory() as folder, mosquitto() as port:
        data_dir = Path(folder)
        prepare(data_dir, machines=load.machines)
        with listening(port, every_machine(Channel.ACKS)) as acks, alarmcast(data_dir, port) as service:
            process_of_service = psutil.Process(service.pid)
            before = sum(process_of_service.cpu_times()[:2])
            started = _queue_then_go(service.pid, load, port)
            seconds = acks.until_acked(load.events, _AT_MOST) - started
            cpu = sum(process_of_service.cpu_times()[:2]) - before
            resident = process_of_service.memory_info().rss / 1e6
        with open_stores(load_settings(data_dir=data_dir)) as stores:
            _insist_on_rows(stores.database, load.events)
    return Drained(load.events / seconds, cpu, resident)


def _queue_then_go(pid: int, load: Load, port: int) -> float:
    os.kill(pid, signal.SIGSTOP)
    try:
        load.push(port)
    finally:
        started = time.monotonic()
        os.kill(pid, signal.SIGCONT)
    return started


def _insist_on_rows(database: Database, expected: int) -> None:
    with database.read() as connection:
        found = connection.execute(select(func.count()).select_from(events)).scalar_one()
    if found != expected:
        raise RuntimeError(f"{expected} events were sent, but {found} are stored")


if __name__ == "__main__":
    run(__doc__, measure, rounds=ROUNDS)
