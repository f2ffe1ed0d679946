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

from sqlalchemy import func, insert, select

from benchmarks.counter import TOPIC
from benchmarks.listener import listening
from benchmarks.load import Load
from benchmarks.prepared import prepare
from benchmarks.report import Figure, run
from benchmarks.servers import alarmcast, mosquitto, process
from service.bootstrap import load_settings, open_stores
from service.store.engine import Database
from service.store.tables import events
from wire.topics import Channel, every_machine

_MACHINES = 20
_BULK = 1000
_AT_MOST = 120  # seconds a drain may take


def measure(rounds: int) -> list[Figure]:
    """Measure both figures, ours and the limit taking turns."""
    single = Load(messages=20_000, events_per_message=1, machines=_MACHINES)
    grouped = Load(messages=4_000, events_per_message=50, machines=_MACHINES)
    counted, ours_single, bulk, ours_grouped = [], [], [], []
    for _ in range(rounds):
        counted.append(single.messages / counting(single))
        ours_single.append(single.events / ingesting(single))
        bulk.append(grouped.events / inserting(grouped))
        ours_grouped.append(grouped.events / ingesting(grouped))
    unit = "events/s"
    return [
        Figure("ingest, 1 event a message", "the same subscriber only counting", unit, counted, ours_single, 0.5),
        Figure("ingest, 50 events a message", "SQLAlchemy Core bulk insert", unit, bulk, ours_grouped, 0.4),
    ]


def counting(load: Load) -> float:
    """Return the seconds in which the counter drains the load."""
    with TemporaryDirectory() as folder, mosquitto() as port, listening(port, TOPIC) as listener:
        command = [sys.executable, "-m", "benchmarks.counter", port, load.messages]
        with process(command, Path(folder) / "log") as counter:
            listener.next(20)
            started = _queue_then_go(counter.pid, load, port)
            finished, _ = listener.next(_AT_MOST)
    return finished - started


def ingesting(load: Load) -> float:
    """Return the seconds in which ``alarmcast serve`` commits and acks the load, starting with no events."""
    with TemporaryDirectory() as folder, mosquitto() as port:
        data_dir = Path(folder)
        prepare(data_dir, machines=load.machines)
        with listening(port, every_machine(Channel.ACKS)) as acks, alarmcast(data_dir, port) as service:
            started = _queue_then_go(service.pid, load, port)
            seconds = acks.until_acked(load.events, _AT_MOST) - started
        with open_stores(load_settings(data_dir=data_dir)) as stores:
            _insist_on_rows(stores.database, load.events)
    return seconds


def inserting(load: Load) -> float:
    """Return the seconds of a bulk insert of the same rows into the same empty table, committed durably."""
    rows = load.rows()
    with TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/alarmcast.sqlite3")
        database.upgrade()
        started = time.monotonic()
        for first in range(0, len(rows), _BULK):
            with database.write() as connection:
                connection.execute(insert(events), rows[first : first + _BULK])
        seconds = time.monotonic() - started
        _insist_on_rows(database, load.events)
        database.close()
    return seconds


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
    run(__doc__, measure, rounds=3)
