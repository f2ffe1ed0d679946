"""What open pages cost, and how soon a large fleet's page is usable.

50 fleet pages with their live connections, and none, take turns while events keep arriving over MQTT and one
client asks for forecasts as fast as it can. Then a real Chromium opens the page of 500 machines; the time is
until cards are there and a search has been answered, and the bytes are what the page receives afterwards.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from uuid import uuid4

from playwright.sync_api import WebSocket, expect, sync_playwright

import alarmcast as alarmcast_client
from benchmarks.broker_observer import listening
from benchmarks.forecast import Client
from benchmarks.report import Figure, run
from benchmarks.seeded_store import machine_ids, prepare
from benchmarks.servers import HOST, Serving, alarmcast, mosquitto
from service.app.configuration import load_settings
from service.app.stores import open_stores
from service.database.event_row import EventRow
from service.machines.events import EventWrite
from wire.codec import encode
from wire.events import AlarmEvent, EventBatch
from wire.identity import MachineId
from wire.rest.auth import SESSION_COOKIE
from wire.timestamps import to_us
from wire.topics import Channel, topic

_PAGES, _MACHINES, _LARGE = 50, 20, 500
_SECONDS = 5.0  # of asking for forecasts, each time
_WARM_UP = 20  # requests, not counted
_EVERY = 0.1  # seconds between two events of the fleet
_USABLE = 2.0  # seconds
_FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"


def measure(rounds: int) -> list[Figure]:
    """Measure both."""
    return [*_cost_of_pages(rounds), *_large_fleet(rounds)]


def _cost_of_pages(rounds: int) -> list[Figure]:
    alone, beside, received = [], [], []
    with TemporaryDirectory() as folder, mosquitto() as broker:
        data_dir = Path(folder)
        _fill(data_dir, _MACHINES)
        with alarmcast(data_dir, broker) as service, _events(broker, machine_ids(_MACHINES)):
            for _ in range(rounds):
                alone.append(_asked(service))
                with _pages(service.port, data_dir) as pages:
                    beside.append(_asked(service))
                received.append(pages.bytes / _PAGES / max(pages.seconds, 1e-9))
    return [
        Figure(
            f"forecasts over REST beside {_PAGES} open pages",
            "the same without pages",
            "requests/s",
            alone,
            beside,
            0.8,
            beside={"bytes/s sent to a page": received},
        )
    ]


def _large_fleet(rounds: int) -> list[Figure]:
    usable, first, later = [], [], []
    with TemporaryDirectory() as folder, mosquitto() as broker:
        data_dir = Path(folder)
        _fill(data_dir, _LARGE)
        with alarmcast(data_dir, broker) as service, _events(broker, machine_ids(_LARGE)):
            for _ in range(rounds):
                seconds, at_first, afterwards = _in_chromium(
                    f"http://{HOST}:{service.port}/", _session(service.port, data_dir)
                )
                usable.append(seconds)
                first.append(at_first)
                later.append(afterwards)
    return [
        Figure(
            f"fleet page of {_LARGE} machines, usable",
            "2 s",
            "s",
            [_USABLE],
            usable,
            1,
            at_most=True,
        ),
        Figure(
            f"fleet page of {_LARGE} machines, bytes of a second's updates",
            "all cards once",
            "bytes",
            first,
            later,
            0.1,
            at_most=True,
        ),
    ]


def _in_chromium(address: str, token: str) -> tuple[float, float, float]:
    """Return the seconds until the page is usable, the bytes it took, and those of a second afterwards."""
    received = [0]

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: received.__setitem__(0, received[0] + len(frame)))

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS.split())
        context = browser.new_context(viewport={"width": 1920, "height": 1080})
        cookie = {"name": SESSION_COOKIE, "value": token, "url": address}
        context.add_cookies([cookie])  # type: ignore[list-item]  # a plain dict
        page = context.new_page()
        page.on("websocket", listen)
        started = time.perf_counter()
        page.goto(address)
        page.get_by_text(f"{_LARGE} of {_LARGE} machines").wait_for()
        page.get_by_label("Search").fill(f"machine-{_LARGE - 1}")
        expect(page.locator(".ac-card")).to_have_count(1)
        seconds = time.perf_counter() - started
        at_first = received[0]
        received[0] = 0
        page.wait_for_timeout(5000)
        afterwards = received[0] / 5
        browser.close()
    return seconds, at_first, afterwards


def _session(port: int, data_dir: Path) -> str:
    """Return the token of a new session."""
    address, name, password = f"http://{HOST}:{port}", f"viewer-{uuid4().hex[:8]}", uuid4().hex
    with alarmcast_client.Client(address, key=(data_dir / "admin.token").read_text().strip()) as local:
        local.users.add(name, password=password)
    with alarmcast_client.Client(address) as visitor:
        return visitor.session.login(name, password).token


@dataclass
class _Open:
    """Pages that were open, and what they received."""

    bytes: int = 0
    seconds: float = 0.0


@contextmanager
def _pages(port: int, data_dir: Path) -> Iterator[_Open]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.page_clients",
        f"http://{HOST}:{port}/",
        str(_PAGES),
        _session(port, data_dir),
    ]
    viewers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    opened = _Open()
    if viewers.stdout is None or viewers.stdout.readline().strip() != "open":
        raise RuntimeError("the pages could not be opened")
    started = time.perf_counter()
    try:
        yield opened
    finally:
        opened.seconds = time.perf_counter() - started
        said, _ = viewers.communicate(timeout=60)
        opened.bytes = json.loads(said.splitlines()[-1])["bytes"]


def _asked(service: Serving) -> float:
    """Return how many forecasts a second one client gets over a connection of its own."""
    site, machine = machine_ids(_MACHINES)[0]
    client, path = Client(service.port, service.key), f"/v1/machines/{site}/{machine}/forecast"
    for _ in range(_WARM_UP):
        client.get(path)
    requests, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < _SECONDS:
        client.get(path)
        requests += 1
    return requests / elapsed


@dataclass
class _Agent:
    """One machine's numbering."""

    machine: MachineId
    epoch: object = field(default_factory=uuid4)
    seq: int = 0


@contextmanager
def _events(broker: int, machines: list[MachineId]) -> Iterator[None]:
    """Let the machines raise alarms in turn, ten a second in all."""
    agents, ended = [_Agent(machine) for machine in machines], Event()

    def speak() -> None:
        with listening(broker, topic(machines[0], Channel.ACKS)) as listener:
            turn = 0
            while not ended.wait(_EVERY):
                agent = agents[turn % len(agents)]
                turn, agent.seq = turn + 1, agent.seq + 1
                event = AlarmEvent(seq=agent.seq, code=agent.seq % 100, at=datetime.now(UTC))
                batch = EventBatch.model_validate({"epoch": agent.epoch, "events": [event]})
                listener.client.publish(topic(agent.machine, Channel.EVENTS), encode(batch), qos=1)

    thread = Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _fill(data_dir: Path, machines: int) -> None:
    """Prepare a store in which every machine has two days of alarms."""
    prepare(data_dir, machines=machines)
    now = datetime.now(UTC)
    with open_stores(load_settings(data_dir=data_dir)) as stores:
        for machine in stores.machines.all():
            epoch = uuid4()
            rows = [
                EventRow(
                    machine.row_id,
                    epoch,
                    seq,
                    seq * machine.row_id % 100,
                    to_us(now - timedelta(minutes=20 * seq)),
                    0,
                )
                for seq in range(1, 145)
            ]
            stores.events.commit(EventWrite(to_us(now), events=rows))


if __name__ == "__main__":
    run(__doc__, measure, rounds=3)
