"""A server for streams on a free port, and a reader of one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from service.app.http_server import Server, listen, url_of
from service.forecasts.streams import StreamHub
from tests.conftest import wait_until


@contextmanager
def serving(app: ASGIApp, streams: StreamHub) -> Iterator[str]:
    """Serve an app on a free port, from a thread."""
    with listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=60)
        server = Server(config, ending=streams.close)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started, "the server has started")
        yield url_of(listener)
        server.should_exit = True
        thread.join(timeout=30)
        assert not thread.is_alive()


@dataclass
class Reader:
    """Reads a stream in a thread of its own and keeps what was told."""

    url: str
    key: str | None = None
    told: list[tuple[str, Any]] = field(default_factory=list)
    comments: int = 0
    ended: bool = False

    def start(self) -> "Reader":
        Thread(target=self._read, daemon=True).start()
        return self

    def of(self, kind: str) -> list[Any]:
        return [data for name, data in list(self.told) if name == kind]

    def _read(self) -> None:
        with suppress(httpx.RemoteProtocolError):  # cut off: then it has not ended in order
            self._read_on()

    def _read_on(self) -> None:
        kind = ""
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        with httpx.stream("GET", self.url, headers=headers, timeout=60) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.told.append((kind, json.loads(line.removeprefix("data: "))))
                self.comments += line.startswith(": ping")
        self.ended = True
