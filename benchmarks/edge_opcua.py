"""An agent that reads OPC UA: memory, time from the server's change to the spool, and sustained changes.

The server is asyncua's, in a process of its own: ``python -m benchmarks.edge_opcua PORT COUNT SECONDS`` writes
so many changes at so many seconds each, and prints the time of each.
"""

import asyncio
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from asyncua import Server, ua

from benchmarks.report import Figure, run
from benchmarks.servers import HOST, REPOSITORY, free_port, mosquitto, process, python, wait_until
from benchmarks.usage import taken
from edge_agent.status import inspect_spool

_PUBLISH_MS = 100
_MOST_MEGABYTES, _MOST_MILLISECONDS, _LEAST_RATE = 80.0, _PUBLISH_MS / 2 + 50, 1000.0
_SINGLE, _SINGLE_PAUSE_S = 100, 0.137  # not a multiple of the publishing interval
_MANY, _MANY_PAUSE_S = 10_000, 0.001
_FIRST = 1000  # code


class Measured(NamedTuple):
    """What one agent took: megabytes, the median milliseconds to the spool, and stored changes per second."""

    megabytes: float
    milliseconds: float
    rate: float


def measure(rounds: int) -> list[Figure]:
    """Measure agents one after the other."""
    found = [agent() for _ in range(rounds)]
    interval = f"{_PUBLISH_MS / 2:g} ms, the mean wait for a publishing every {_PUBLISH_MS} ms, and 50 ms"
    return [
        Figure(
            "agent with opcua, resident memory",
            "what a gateway spares",
            "MB",
            [_MOST_MEGABYTES],
            [one.megabytes for one in found],
            1,
            at_most=True,
        ),
        Figure(
            "agent with opcua, change to spool",
            interval,
            "ms",
            [_MOST_MILLISECONDS],
            [one.milliseconds for one in found],
            1,
            at_most=True,
        ),
        Figure(
            "agent with opcua, sustained changes",
            "1,000 a second",
            "changes/s",
            [_LEAST_RATE],
            [one.rate for one in found],
            0.95,  # of as many as the server sends
        ),
    ]


def agent() -> Measured:
    """Start an agent, and let servers send single changes, then many."""
    with TemporaryDirectory() as name, mosquitto() as broker:
        folder, port = Path(name), free_port()
        signal = {"as": "code", "node": "ns=2;s=code"}
        options = {
            "url": f"opc.tcp://{HOST}:{port}/",
            "mode": "tags",
            "publish_ms": _PUBLISH_MS,
            "signals": [signal],
        }
        flags = {
            "site": "plant",
            "machine": "filler",
            "spool-path": folder / "spool",
            "broker-port": broker,
            "source-kind": "opcua",
            "source-options": json.dumps(options),
        }
        command = python(
            "edge_agent", "run", *(part for flag, value in flags.items() for part in (f"--{flag}", value))
        )
        with process(command, folder / "log") as started:
            delays = _single(folder / "spool", port)
            rate = _many(folder / "spool", port)
            return Measured(taken(started.pid).megabytes, median(delays) * 1000, rate)


def _single(spool: Path, port: int) -> list[float]:
    """Return the seconds from each change to its commit in the spool."""
    with _server(port, _SINGLE, _SINGLE_PAUSE_S) as server, _reader(spool) as database:
        arrived: dict[int, float] = {}
        while server.poll() is None and len(arrived) < _SINGLE:
            last = max(arrived, default=_FIRST - 1)
            for (code,) in database.execute("SELECT code FROM events WHERE kind = 0 AND code > ?", (last,)):
                arrived[code] = time.time()
            time.sleep(0.001)
        output, _ = server.communicate("\n", timeout=60)
    written = {int(code): float(at) for code, at in (line.split() for line in output.splitlines())}
    return [arrived[code] - at for code, at in written.items() if code in arrived]


def _many(spool: Path, port: int) -> float:
    """Return stored changes per second, from the first change to the last in the spool; all must be stored."""
    with _reader(spool) as database:

        def stored() -> int:
            return int(database.execute("SELECT count(*) FROM events WHERE kind = 0").fetchone()[0])

        before = stored()
        with _server(port, _MANY, _MANY_PAUSE_S) as server:
            wait_until(lambda: stored() - before >= _MANY, "all changes are stored", seconds=120)
            ended = time.time()
            output, _ = server.communicate("\n", timeout=60)
    return _MANY / (ended - float(output.split()[1]))


@contextmanager
def _reader(spool: Path) -> Iterator[sqlite3.Connection]:
    wait_until(lambda: inspect_spool(spool), "the agent has a spool")
    with closing(sqlite3.connect(f"{spool.as_uri()}?mode=ro", uri=True, timeout=10)) as database:
        yield database


@contextmanager
def _server(port: int, count: int, pause: float) -> Iterator["subprocess.Popen[str]"]:
    command = [str(part) for part in python("benchmarks.edge_opcua", port, count, pause)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


async def serve(port: int, count: int, pause: float) -> None:
    """Write ``count`` codes once a client is subscribed, print their times, and wait for a line."""
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://{HOST}:{port}/")
    await server.register_namespace("urn:benchmark")
    node = await server.nodes.objects.add_variable(ua.NodeId("code", 2), "code", 0, ua.VariantType.UInt32)
    lines = []
    async with server:
        while not server.iserver.subscription_service.subscriptions:  # noqa: ASYNC110 - it announces none
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        began = time.perf_counter()
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number * pause - time.perf_counter()))
            lines.append(f"{_FIRST + number} {time.time()}")
            await node.write_value(_FIRST + number, ua.VariantType.UInt32)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    print("\n".join(lines))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1].isdigit():
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
    else:
        run(__doc__, measure, rounds=3)
