"""One machine's forecast over REST, requests a second: against FastAPI returning the same bytes from memory.

Eight keep-alive connections ask ``alarmcast serve`` (guard, metrics, pages and all, with a key) and a FastAPI with
one route and nothing else, in turns, each a real uvicorn. The asker knows how long an answer is and reads no more
of it than that, so that it is never what is measured; a spell in which the forecast was made anew with another
length is measured again. A plant of six machines with sixty days of alarms each.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.report import ROUNDS, Figure, run
from benchmarks.seeded_store import machine_ids, prepare
from benchmarks.servers import HOST, alarmcast, free_port, listens, mosquitto, process, python, wait_until

_MACHINES, _DAYS = 6, 60
_CONNECTIONS, _SECONDS = 8, 4.0
_TRIES = 5
_MACHINE = machine_ids(_MACHINES)[0]
_PATH = f"/v1/machines/{_MACHINE.site}/{_MACHINE.machine}/forecast"


def measure(rounds: int) -> list[Figure]:
    """Ask both in turns."""
    limits, ours = [], []
    with TemporaryDirectory() as folder, mosquitto() as broker:
        data_dir = Path(folder)
        prepare(data_dir, machines=_MACHINES, days=_DAYS)
        with alarmcast(data_dir, broker) as service:
            body = data_dir / "forecast.json"
            body.write_bytes(asyncio.run(_body(service.port, service.key)))
            with _plain(body, data_dir / "plain.log") as port:
                for _ in range(rounds):
                    limits.append(requests_a_second(port, service.key))
                    ours.append(requests_a_second(service.port, service.key))
    return [
        Figure(
            "one forecast over REST",
            "FastAPI returning the same bytes from memory",
            "requests/s",
            limits,
            ours,
            0.5,
        )
    ]


@contextmanager
def _plain(body: Path, log: Path) -> Iterator[int]:
    port = free_port()
    with process(python("benchmarks.rest_baseline", port, body), log):
        wait_until(lambda: listens(port), "the plain app listens")
        yield port


class _MadeAnew(Exception):
    """The answer is not as long as it was."""


def requests_a_second(port: int, key: str) -> float:
    """Return how many requests were answered a second, after a moment to warm up."""
    for _ in range(_TRIES):
        try:
            asyncio.run(_asked(port, key, _SECONDS / 4))
            started = time.monotonic()
            return asyncio.run(_asked(port, key, _SECONDS)) / (time.monotonic() - started)
        except (_MadeAnew, TimeoutError):  # a shorter one leaves the asker waiting
            continue
    raise RuntimeError(f"{_PATH} never stayed the same for {_SECONDS:.0f} seconds")


async def _asked(port: int, key: str, seconds: float) -> int:
    size = len(await _answer(port, key))
    until = time.monotonic() + seconds
    async with asyncio.timeout(2 * seconds):
        return sum(await asyncio.gather(*(_keep_asking(port, key, size, until) for _ in range(_CONNECTIONS))))


async def _keep_asking(port: int, key: str, size: int, until: float) -> int:
    reader, writer = await asyncio.open_connection(HOST, port)
    request, answers = _request(key), 0
    while time.monotonic() < until:
        writer.write(request)
        answer = await reader.readexactly(size)
        if not answer.startswith(b"HTTP/1.1 "):
            raise _MadeAnew
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{_PATH} answered {answer[:200]!r}")
        answers += 1
    writer.close()
    return answers


async def _answer(port: int, key: str) -> bytes:
    """Return one whole answer, heading and body."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(_request(key, b"Connection: close\r\n"))
    answer = await reader.read()
    writer.close()
    return answer.replace(b"connection: close\r\n", b"")


async def _body(port: int, key: str) -> bytes:
    return (await _answer(port, key)).partition(b"\r\n\r\n")[2]


def _request(key: str, more: bytes = b"") -> bytes:
    return f"GET {_PATH} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {key}\r\n".encode() + more + b"\r\n"


if __name__ == "__main__":
    run(__doc__, measure, rounds=ROUNDS)
