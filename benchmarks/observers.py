"""Clients during a load phase: one open page, and a few HMIs that wait for forecasts."""

import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Event, Thread

import httpx
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from benchmarks.servers import HOST, Serving
from forecasting.window import grid_floor
from wire.clock import PlantClock
from wire.identity import MachineId
from wire.topics import Channel, topic

GRID = timedelta(minutes=15)
_MOST_OVERTAKEN = 0.25  # of the HMIs may hear a newer forecast instead of the grid's
_ASK_EVERY, _LOOK_EVERY = 0.2, 1.0  # seconds; a page looks once a second, however many are open


@dataclass
class Answers:
    """Seconds of every answer, by what was asked for."""

    forecast: list[float] = field(default_factory=list)
    fleet: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    fleet_bytes: int = 0


@contextmanager
def asking(service: Serving, machines: Sequence[MachineId], *, page: bool) -> Iterator[Answers]:
    """Ask for any machine's forecast; with a page, for the whole fleet once and then for what has changed."""
    answers, ended = Answers(), Event()
    asked = (service, machines, answers, ended)
    threads = [
        Thread(target=one, args=asked, daemon=True) for one in ((_forecasts, _page) if page else (_forecasts,))
    ]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _forecasts(service: Serving, machines: Sequence[MachineId], answers: Answers, ended: Event) -> None:
    chance = random.Random(7)  # noqa: S311 - a load, no secret
    with _client(service) as client:
        while not ended.wait(_ASK_EVERY):
            machine = chance.choice(machines)
            _get(client, f"/v1/machines/{machine.site}/{machine.machine}/forecast", answers.forecast)


def _page(service: Serving, _machines: Sequence[MachineId], answers: Answers, ended: Event) -> None:
    with _client(service) as client:
        seen = _get(client, "/v1/fleet", answers.fleet)
        answers.fleet_bytes = len(seen)
        while not ended.wait(_LOOK_EVERY):
            seen = _get(client, f"/v1/fleet?since={json.loads(seen)['revision']}", answers.changes)


def _client(service: Serving) -> httpx.Client:
    headers = {"Authorization": f"Bearer {service.key}"}
    return httpx.Client(base_url=f"http://{HOST}:{service.port}", headers=headers, timeout=120)


def _get(client: httpx.Client, path: str, took: list[float]) -> bytes:
    began = time.monotonic()
    answer = client.get(path).raise_for_status()
    took.append(time.monotonic() - began)
    return answer.content


@dataclass
class GridWatch:
    """A few machines' forecasts as they are announced, to see when everybody has got the grid's."""

    hmis: int
    clock: PlantClock
    _arrived: SimpleQueue[tuple[float, bytes]] = field(default_factory=SimpleQueue)
    _heard: dict[datetime, list[float]] = field(default_factory=dict)

    def note(self, _client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        """Keep an announcement with its time; what stood at the broker before is old."""
        if not message.retain:
            self._arrived.put((time.time(), bytes(message.payload)))

    def refreshed(self) -> dict[datetime, float]:
        """Return the grid's moments that reached everybody, and the wall seconds from each to the last of them."""
        while True:
            try:
                at, payload = self._arrived.get_nowait()
            except Empty:
                break
            moment = datetime.fromisoformat(json.loads(payload)["as_of"])
            if moment == grid_floor(moment, GRID):
                self._heard.setdefault(moment, []).append(at)
        enough = self.hmis * (1 - _MOST_OVERTAKEN)
        return {
            moment: max(times) - self._wall(moment)
            for moment, times in self._heard.items()
            if len(times) >= enough
        }

    def refreshed_since(self, since: float) -> float | None:
        """Return the delay of the first moment after a wall time, if it has reached everybody."""
        refreshed = self.refreshed()
        return next((refreshed[at] for at in sorted(refreshed) if self._wall(at) >= since), None)

    def until_next(self) -> float:
        """Return the wall seconds until the grid's next moment."""
        now = self.clock.now()
        return self.clock.wall_seconds(grid_floor(now, GRID) + GRID - now)

    def is_over(self) -> bool:
        """Say whether a moment after the one at the start has reached everybody."""
        return len(self.refreshed()) > 1

    def _wall(self, moment: datetime) -> float:
        origin = self.clock.plant_origin or self.clock.wall_origin
        return self.clock.wall_origin.timestamp() + self.clock.wall_seconds(moment - origin)


@contextmanager
def watching(port: int, machines: Sequence[MachineId], clock: PlantClock) -> Iterator[GridWatch]:
    """Listen to these machines' forecasts."""
    watch = GridWatch(len(machines), clock)
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.on_message = watch.note
    client.connect(HOST, port)
    client.subscribe([(topic(machine, Channel.FORECAST), 1) for machine in machines])
    client.loop_start()
    try:
        yield watch
    finally:
        client.disconnect()
        client.loop_stop()


def set_clock(plant: datetime, speed: float) -> PlantClock:
    """Return a plant clock that stands at a moment now and runs so fast from there."""
    return PlantClock(datetime.now(UTC), plant, speed)
