"""The edge agent: its resident memory while it publishes, its start to its first publish, and its OPC UA source.

Real agents with a simulated machine's backlog of two months, which a real service acks while the memory is read.
"""

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from benchmarks import edge_opcua
from benchmarks.broker_observer import listening
from benchmarks.report import Figure, run
from benchmarks.seeded_store import machine_ids, prepare
from benchmarks.servers import HOST, REPOSITORY, alarmcast, mosquitto, process
from wire.codec import encode
from wire.state import AgentState
from wire.topics import Channel, topic

_MACHINE = machine_ids(1)[0]
_BACKLOG = timedelta(days=60)
_PUBLISHES_FOR = 5.0  # seconds
_IMPORTS = "import paho.mqtt.client, pydantic"
_MOST_MEGABYTES, _MOST_SECONDS = 45.0, 1.0


def measure(rounds: int) -> list[Figure]:
    """Start agents and bare interpreters in turns; read the memory of each agent once."""
    memory, starts, imports = [], [], []
    for _ in range(rounds):
        imports.append(importing())
        starts.append(starting(known=True))
        memory.append(resident())
    return [
        Figure(
            "agent, resident memory",
            "what a small gateway spares",
            "MB",
            [_MOST_MEGABYTES],
            memory,
            1,
            at_most=True,
        ),
        Figure("agent, start to first publish", "a second", "s", [_MOST_SECONDS], starts, 1, at_most=True),
        Figure(
            "agent, start to first publish",
            "importing paho.mqtt.client and pydantic",
            "s",
            imports,
            starts,
            3,
            at_most=True,
        ),
        *edge_opcua.measure(rounds),
    ]


def importing() -> float:
    """Return the seconds a bare interpreter takes to import what the agent is built on, and to end."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", _IMPORTS], cwd=REPOSITORY, check=True)
    return time.monotonic() - started


def starting(*, known: bool) -> float:
    """Return the seconds from spawning an agent until a subscriber holds its first events.

    Where it is ``known`` the broker has its last farewell, as before every start but the very first; without one
    an agent listens for half a second whether another one speaks in its name.
    """
    with (
        TemporaryDirectory() as folder,
        mosquitto() as port,
        listening(port, topic(_MACHINE, Channel.EVENTS)) as events,
    ):
        if known:
            farewell = AgentState(
                online=False, agent="0", epoch=uuid4(), spooled=0, skew_ms=None, at=datetime.now(UTC)
            )
            state = topic(_MACHINE, Channel.STATE)
            events.client.publish(state, encode(farewell), qos=1, retain=True).wait_for_publish(10)
        command = _agent(Path(folder), port)
        started = time.monotonic()
        with process(command, Path(folder) / "log"):
            first, _ = events.next(30)
    return first - started


def resident() -> float:
    """Return the megabytes an agent holds in memory at most, read while it publishes and is acked."""
    with TemporaryDirectory() as folder, mosquitto() as port:
        data_dir = Path(folder)
        prepare(data_dir, machines=1)
        with (
            listening(port, topic(_MACHINE, Channel.ACKS)) as acks,
            alarmcast(data_dir, port),
            process(_agent(data_dir, port), data_dir / "log") as agent,
        ):
            acks.next(30)
            until, most = time.monotonic() + _PUBLISHES_FOR, 0.0
            while time.monotonic() < until:
                most = max(most, _resident_megabytes(agent.pid))
                time.sleep(0.1)
    return most


def _agent(folder: Path, port: int) -> list[object]:
    """Return the command of an agent whose machine has much to tell, and an hour more every second."""
    now = datetime.now(UTC)
    options = {
        "site": _MACHINE.site,
        "machine": _MACHINE.machine,
        "spool-path": folder / "spool.sqlite3",
        "broker-host": HOST,
        "broker-port": port,
        "source-kind": "simulated",
        "source-since": (now - _BACKLOG).isoformat(),
        "clock-wall-origin": now.isoformat(),
        "clock-speed": 3600,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [sys.executable, "-m", "edge_agent", "run", *flags]


def _resident_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has ended")


if __name__ == "__main__":
    run(__doc__, measure, rounds=5)
