"""A backlog that waits in the broker while the service stands still, and how fast it is then committed."""

import os
import signal
import socket
import sqlite3
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from benchmarks import packets
from benchmarks.broker_observer import listening
from benchmarks.load_phase import Running
from benchmarks.servers import HOST
from benchmarks.synthetic_plant import epoch_of
from service.database.engine import Database
from wire.codec import encode
from wire.events import AlarmEvent, EventBatch
from wire.topics import Channel, every_machine, topic

MESSAGES, EVENTS_A_MESSAGE, MACHINES = 2000, 20, 100
_FIRST_SEQ = 1_000_000
_EVERY = timedelta(seconds=30)
_AT_MOST = 300.0  # seconds
_BULK = 1000
_INSERT = (
    "INSERT OR IGNORE INTO events (epoch_id, seq, machine_id, code, at_us, received_us, flag)"
    " VALUES (?, ?, ?, ?, ?, ?, 0)"
)


def drained(run: Running) -> float:
    """Return how many events a second the service commits and acks of a backlog of up to a hundred machines."""
    backlog = _backlog(run)
    pids = [service.pid for service in run.services.values()]
    with listening(run.host.broker_port, every_machine(Channel.ACKS)) as acks:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            _push(run.host.broker_port, backlog)
        finally:
            began = time.monotonic()
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        events = MESSAGES * EVENTS_A_MESSAGE
        return events / (acks.until_acked(events, _AT_MOST) - began)


def inserted() -> float:
    """Return how many events a second sqlite3 alone inserts into an empty table of the same schema, durably."""
    rows = [
        (n % MACHINES + 1, n, n % MACHINES + 1, n % 150, 1_700_000_000_000_000 + n * 10_000_000, 0)
        for n in range(MESSAGES * EVENTS_A_MESSAGE)
    ]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "alarmcast.sqlite3"
        database = Database(f"sqlite:///{file}")
        database.upgrade()
        database.close()
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            began = time.monotonic()
            for first in range(0, len(rows), _BULK):
                with connection:
                    connection.executemany(_INSERT, rows[first : first + _BULK])
            return len(rows) / (time.monotonic() - began)


def _backlog(run: Running) -> bytearray:
    """Return messages of the last hours; the machines take turns."""
    ids = run.host.plant.ids[:MACHINES]
    rounds = -(-MESSAGES // len(ids)) * EVENTS_A_MESSAGE
    start = run.clock.now() - _EVERY * rounds
    backlog = bytearray()
    for number in range(MESSAGES):
        machine, before = ids[number % len(ids)], number // len(ids) * EVENTS_A_MESSAGE
        events = [
            AlarmEvent(seq=_FIRST_SEQ + seq, code=seq * 7 % 150, at=start + _EVERY * seq)
            for seq in range(before, before + EVENTS_A_MESSAGE)
        ]
        batch = EventBatch(epoch=epoch_of(machine), events=events)
        message_id = number % packets.MESSAGE_IDS + 1
        backlog += packets.publish(topic(machine, Channel.EVENTS), encode(batch), message_id)
    return backlog


def _push(port: int, backlog: bytearray) -> None:
    """Hand everything to the broker and return when it has taken all of it."""
    with socket.create_connection((HOST, port), timeout=60) as broker:
        broker.sendall(packets.connect("backlog"))
        sender = Thread(target=broker.sendall, args=(backlog,))
        sender.start()
        reader, taken = packets.Reader(), 0
        while taken < MESSAGES:
            received = broker.recv(1 << 16)
            if not received:
                raise ConnectionError("the broker closed the connection of the backlog")
            taken += sum(kind == packets.PUBACK for kind, _ in reader.packets(received))
        sender.join()
