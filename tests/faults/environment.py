"""Where a fault plays: real processes, a load that goes on whatever happens, and a count of what arrived."""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread

from tests.conftest import (
    Mosquitto,
    broker_in,
    free_port,
    postgresql_programs,
    postgresql_server,
    wait_until,
)
from tests.faults.proxy import Proxy
from tests.support.cluster import ClusterPlant
from tests.support.secured_broker import GuardedMosquitto, guarded_in, has_plugin
from tests.system.conftest import Plant, Process
from wire.enums import ProcessRole
from wire.identity import MachineId
from wire.timestamps import isoformat

_PAUSE = 0.02  # seconds between two writes of the load


class Broken(Exception):
    """A promise was broken; the message says which."""


class Skipped(Exception):
    """This computer cannot play the fault; the message says what is missing."""


def insist(holds: object, promise: str) -> None:
    """Raise :class:`Broken` unless a promise holds."""
    if not holds:
        raise Broken(promise)


@dataclass
class Load:
    """Machines that raise alarms all the time, a code for each number, so that nothing can be mistaken."""

    logs: dict[str, Path]
    rate: float
    written: dict[str, int] = field(default_factory=dict)
    _stop: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)
    _thread: Thread | None = None

    def start(self) -> None:
        self.written |= dict.fromkeys(self.logs, 0)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep logs as they are for a moment; what is due meanwhile is raised afterwards."""
        with self._lock:
            yield

    def _run(self) -> None:
        started = time.monotonic()
        while not self._stop.wait(_PAUSE):
            due = int((time.monotonic() - started) * self.rate)
            for machine in self.logs:
                self.raise_alarms(machine, due - self.written[machine])

    def raise_alarms(self, machine: str, count: int) -> None:
        """Append so many alarms to a machine's log."""
        with self._lock:
            first, at = self.written[machine], isoformat(datetime.now(UTC))
            lines = (f'{{"timestamp": "{at}", "alarm": {first + place}}}\n' for place in range(count))
            with self.logs[machine].open("a") as file:
                file.writelines(lines)
            self.written[machine] = first + max(count, 0)


@dataclass
class LoadedSystem:
    """A running plant under load."""

    plant: Plant
    load: Load
    agents: dict[str, Process]
    proxy: Proxy | None = None
    patience: float = 120.0

    def stored(self) -> dict[str, int]:
        """Return how many events of each machine the database holds."""
        return self.plant.counted()

    def recovered(self, seconds: float | None = None) -> float:
        """Wait until all that was raised up to now is stored, and return how long that took.

        What never comes is no reason to wait for ever: the count at the end tells.
        """
        started, wanted = time.monotonic(), dict(self.load.written)
        while time.monotonic() - started < (seconds or self.patience):
            stored = self.stored()
            if all(stored.get(machine, 0) >= count for machine, count in wanted.items()):
                break
            time.sleep(0.05)
        return time.monotonic() - started

    def drain(self) -> None:
        """Stop raising alarms and wait until every spool is empty."""
        self.load.stop()
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline and not self.is_drained():
            time.sleep(0.1)

    def is_drained(self) -> bool:
        stored = self.stored()  # pasts that were loaded, too, of machines that raise nothing here
        return all(
            stored.get(machine, 0) == number and self.plant.spooled(machine) == 0
            for machine, number in self.load.written.items()
        )


@dataclass
class Tally:
    """What a row of the table counts."""

    events: int = 0
    lost: int = 0
    duplicated: int = 0

    def count(self, system: LoadedSystem, excused: dict[str, set[int]] | None = None) -> None:
        """Hold what was raised against what is stored; ``excused`` are numbers that a gap record names."""
        for machine, written in system.load.written.items():
            codes = [code for _, code in system.plant.stored(machine)]
            kept = set(codes)
            named = (excused or {}).get(machine, set())
            self.events += written
            self.lost += len(set(range(written)) - kept - named)
            self.duplicated += len(codes) - len(kept)


@dataclass
class FaultEnvironment:
    """Builds systems and counts what they lose."""

    seed: int = 0
    module: str = "service"  # what runs as the service; the suite's own test puts a broken one here
    tally: Tally = field(default_factory=Tally)
    patience: float = 120.0  # seconds after which what has not arrived is lost

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311

    @contextmanager
    def system(  # noqa: PLR0913 - a plant has many sides
        self,
        *,
        machines: int = 3,
        rate: float = 200.0,
        proxied: str = "",
        data: Path | None = None,
        spools: Path | None = None,
        judged: bool = True,
        settings: dict[str, str] | None = None,
        guarded: bool = False,
        shared_out: Mapping[ProcessRole, int] | None = None,
        packet_limit: int = 0,
    ) -> Iterator[LoadedSystem]:
        """Run broker, service, agents and load; at the end drain, and count what is lost or doubled.

        ``proxied`` is "agents" or "service": whose connections go through the proxy. A ``guarded`` broker lets
        in only who was enrolled, with the password that was shown then. With ``shared_out`` the service is so many
        processes of each role, on PostgreSQL. The broker disconnects who sends more bytes than ``packet_limit``.
        """
        with (
            tempfile.TemporaryDirectory(prefix="alarmcast-fault-") as name,
            _broker(Path(name), guarded=guarded, packet_limit=packet_limit) as broker,
            ExitStack() as servers,
        ):
            folder = Path(name)
            proxy = Proxy(broker.port) if proxied else None
            if proxy:
                proxy.start()
            environment = (settings or {}) | _access(broker)
            if shared_out:
                url = servers.enter_context(_postgresql())
                plant: Plant = ClusterPlant(
                    folder, broker, environment=environment, database_url=url, shared_out=shared_out
                )
            else:
                plant = Plant(
                    folder,
                    broker,
                    module=self.module,
                    service_broker_port=proxy.port if proxy and proxied == "service" else None,
                    data_dir=data,
                    spools=spools,
                    environment=environment,
                )
            ids = [f"plant/machine-{number}" for number in range(machines)]
            logs = {machine: folder / f"{machine.split('/')[1]}.jsonl" for machine in ids}
            system = LoadedSystem(plant, Load(logs, rate), {}, proxy, self.patience)
            try:
                plant.start_service()
                shown = {machine: register(plant, machine) for machine in ids}
                through = {"broker_port": proxy.port} if proxy and proxied == "agents" else {}
                for machine in ids:
                    system.agents[machine] = plant.agent(machine, logs[machine], **through | shown[machine])
                    system.agents[machine].start()
                system.load.start()
                yield system
                if judged:
                    system.drain()
                    self.tally.count(system)
            finally:
                system.load.stop()
                for process in reversed(plant.processes):
                    if process.running is not None:
                        process.running.kill()
                        process.running.wait()
                if proxy:
                    proxy.stop()


def register(plant: Plant, machine: str) -> dict[str, object]:
    """Register a machine with the running service; return what lets its agent in, if the broker is guarded."""
    if _access(plant.broker):
        wait_until(
            lambda: plant.api.health.status().broker.secured, "the service knows that the broker is guarded"
        )
    issued = plant.api.enrolment.enrol(machine, name=MachineId.parse(machine).machine).credentials
    return {} if issued is None else {"broker_username": issued.username, "broker_password": issued.password}


def guarded(system: LoadedSystem) -> GuardedMosquitto:
    """Return the broker of a system that is guarded."""
    broker = system.plant.broker
    assert isinstance(broker, GuardedMosquitto)
    return broker


def _access(broker: Mosquitto) -> dict[str, str]:
    return broker.environment if isinstance(broker, GuardedMosquitto) else {}


def _postgresql() -> AbstractContextManager[str]:
    programs = postgresql_programs()
    if programs is None:
        raise Skipped("PostgreSQL's server programs are not installed")
    return postgresql_server(programs)


@contextmanager
def _broker(folder: Path, *, guarded: bool, packet_limit: int) -> Iterator[Mosquitto]:
    if not (shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists()):
        raise Skipped("mosquitto is not installed")
    if guarded and not has_plugin():
        raise Skipped("mosquitto's dynamic-security plugin is not installed")
    folder.chmod(0o755)
    broker = guarded_in(folder / "mosquitto") if guarded else broker_in(folder / "mosquitto")
    if packet_limit:
        broker.extra += f"max_packet_size {packet_limit}\n"
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


__all__ = [
    "Broken",
    "FaultEnvironment",
    "Load",
    "LoadedSystem",
    "Skipped",
    "Tally",
    "free_port",
    "insist",
    "wait_until",
]
