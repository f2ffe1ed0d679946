"""One machine's forecast over REST, at one client: against the same app returning a constant of the same size.

Three kinds of request take turns, over keep-alive connections to one real uvicorn: the constant, the forecast as
a page polls it, and the forecast right after an event of that machine has come over MQTT and has been acked, so
that it must be made anew; an answer that is not newer than its event does not count as the worst case.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import numpy as np

from benchmarks import constant_endpoint as constant
from benchmarks.broker_observer import Listener, listening
from benchmarks.report import Figure, run
from benchmarks.seeded_store import machine_ids, prepare
from benchmarks.servers import HOST, alarmcast, free_port, mosquitto
from wire.codec import encode
from wire.events import AlarmEvent, EventBatch
from wire.topics import Channel, topic

_MACHINES, _DAYS = 6, 60
_REQUESTS = 300  # of each kind in a round
_WARM_UP = 20  # requests before them on a fresh connection, not timed
_MACHINE = machine_ids(_MACHINES)[0]
_PATH = f"/v1/machines/{_MACHINE.site}/{_MACHINE.machine}/forecast"


def measure(rounds: int) -> list[Figure]:
    """Measure the three kinds of request in turns."""
    limits: list[list[float]] = []
    polled: list[list[float]] = []
    anew: list[list[float]] = []
    with TemporaryDirectory() as folder, mosquitto() as port:
        data_dir = Path(folder)
        prepare(data_dir, machines=_MACHINES, days=_DAYS)
        with (
            listening(port, topic(_MACHINE, Channel.ACKS)) as acks,
            alarmcast(data_dir, port, command=_program(limit_port := free_port())) as service,
        ):
            client, bare = Client(service.port, service.key), Client(limit_port, service.key)
            limit = constant.PATH.format(size=len(client.get(_PATH)))
            events = Events(acks)
            for _ in range(rounds):
                limits.append(bare.times(limit, _REQUESTS))
                polled.append(client.times(_PATH, _REQUESTS))
                anew.append(client.times(_PATH, _REQUESTS, before=events.send_one, insist=events.insist_on_newer))
    return [
        Figure(
            f"forecast over REST, {kind}, p{percent}",
            "a constant of its size",
            "ms",
            [1000 * float(np.percentile(times, percent)) for times in limits],
            [1000 * float(np.percentile(times, percent)) for times in ours],
            3,
            at_most=True,
        )
        for kind, ours in (("polled", polled), ("right after an event", anew))
        for percent in (50, 99)
    ]


def _program(limit_port: int) -> list[str]:
    return ["benchmarks.constant_endpoint", "--limit-port", str(limit_port)]


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int, key: str | None = None) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=30)
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def get(self, path: str) -> bytes:
        """Return the body of an answer that must be good."""
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != HTTPStatus.OK:
            raise RuntimeError(f"{path} answered {answer.status}: {body[:500]!r}")
        return body

    def times(
        self,
        path: str,
        requests: int,
        *,
        before: Callable[[], None] = lambda: None,
        insist: Callable[[bytes], bool] = lambda _body: True,
    ) -> list[float]:
        """Return the seconds of each request whose answer is what was asked for, ``before`` not included."""
        self._connection.close()  # the server may have, while another connection was being measured
        for _ in range(_WARM_UP):
            self.get(path)
        seconds = []
        for _ in range(requests):
            before()
            started = time.perf_counter()
            body = self.get(path)
            taken = time.perf_counter() - started
            if insist(body):
                seconds.append(taken)
        if len(seconds) < requests / 2:
            raise RuntimeError(f"only {len(seconds)} of {requests} answers of {path} were made anew")
        return seconds


class Events:
    """An agent's side that sends one event at a time and waits for its ack."""

    def __init__(self, acks: Listener) -> None:
        self._acks, self._epoch = acks, uuid4()
        self._seq = 0
        self._sent = datetime.now(UTC)

    def send_one(self) -> None:
        """Publish an alarm of this moment and return when the service says that it is committed."""
        self._seq, self._sent = self._seq + 1, datetime.now(UTC)
        event = AlarmEvent(seq=self._seq, code=self._seq % 100, at=self._sent)
        batch = EventBatch(epoch=self._epoch, events=[event])
        self._acks.client.publish(topic(_MACHINE, Channel.EVENTS), encode(batch), qos=1)
        self._acks.until_acked(1, 30)

    def insist_on_newer(self, body: bytes) -> bool:
        """Say whether a forecast was made after the last event was sent."""
        return datetime.fromisoformat(json.loads(body)["as_of"]) > self._sent


if __name__ == "__main__":
    run(__doc__, measure, rounds=5)
