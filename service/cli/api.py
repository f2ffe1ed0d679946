"""The API, wherever it is: in the service that holds the database, or in this process if nobody does."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import typer

from service.bootstrap.service import Service
from service.bootstrap.stores import open_stores
from service.errors import DatabaseInUse, InputRejected, Unavailable
from service.settings import Settings
from service.store.lock import WriterLock

_PATIENCE = httpx.Timeout(60.0, read=600.0)  # a year of history takes a while to be stored
_CHUNK = 1 << 20


def call(
    settings: Settings, method: str, path: str, *, file: "Sent | None" = None, **request: Any
) -> httpx.Response:
    """Send one request, with a file as its body if there is one, and return its answer.

    A problem becomes the error it describes.
    """
    address = _running(settings)
    if address is None:
        answer = _call_here(settings, method, path, file, request)
    else:
        try:
            answer = asyncio.run(_send(None, address, method, path, file, request))
        except httpx.HTTPError as failure:
            raise Unavailable(f"The service at {address} does not answer: {failure!r}.") from None
    if answer.is_error:
        raise InputRejected(_detail(answer))
    return answer


def _call_here(
    settings: Settings, method: str, path: str, file: "Sent | None", request: dict[str, Any]
) -> httpx.Response:
    is_new = not settings.data_dir.exists()
    with open_stores(settings) as stores:
        if is_new:
            typer.echo(f"No service runs here; {settings.data_dir} is new and empty.", err=True)
        transport = httpx.ASGITransport(Service(settings, stores).app)
        return asyncio.run(_send(transport, "http://here", method, path, file, request))


def _running(settings: Settings) -> str | None:
    """Return the address of the service that works on the same database, if one does.

    On SQLite the holder of the lock has left it there; on PostgreSQL it is where the settings say, or nowhere.
    """
    if settings.database_url is None or settings.database_url.startswith("sqlite"):
        lock = WriterLock(settings.data_dir / "alarmcast.lock")
        try:
            lock.acquire().release()
        except DatabaseInUse as error:
            if error.url is None:
                raise
            return error.url
        except OSError:
            return None  # whatever is wrong with the folder is said where it is opened
        return None
    address = f"http://{settings.host}:{settings.port}"
    try:
        return address if httpx.get(f"{address}/livez", timeout=5).is_success else None
    except httpx.HTTPError:
        return None


class Sent:
    """A file that is sent piece by piece, telling how many bytes have gone."""

    def __init__(self, file: Path, told: Callable[[int], None]) -> None:
        try:
            self._file = file.open("rb")
        except OSError as error:
            raise InputRejected(f"Cannot read {file}: {error.strerror}.") from None
        self.size, self._told = file.stat().st_size, told

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the file's bytes from its start."""
        self._file.seek(0)
        with self._file:
            while piece := self._file.read(_CHUNK):
                yield piece
                self._told(self._file.tell())


def follow(settings: Settings, path: str) -> Iterator[dict[str, Any]]:
    """Yield what a running service says in a stream of server-sent events."""
    address = _running(settings)
    if address is None:
        raise Unavailable("No service is running, and only a running one learns. Start it: alarmcast serve")
    try:
        with httpx.stream("GET", f"{address}{path}", timeout=_PATIENCE) as answer:
            if answer.is_error:
                answer.read()
                raise InputRejected(_detail(answer))
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))
    except httpx.HTTPError as failure:
        raise Unavailable(f"The service at {address} no longer answers: {failure!r}.") from None


async def _send(
    transport: httpx.ASGITransport | None,
    address: str,
    method: str,
    path: str,
    file: Sent | None,
    request: dict[str, Any],
) -> httpx.Response:
    if file is not None:
        request = request | {"content": file.pieces()}
    async with httpx.AsyncClient(transport=transport, base_url=address, timeout=_PATIENCE) as client:
        return await client.request(method, path, **request)


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The service answered {answer.status_code}."
