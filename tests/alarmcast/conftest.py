"""The client against the real app, in this process or over a socket."""

from collections.abc import Iterator
from threading import Thread

import httpx
import pytest
import uvicorn

from alarmcast import AsyncClient, Client, InProcess
from service.app.http_server import Server, listen, url_of
from service.app.service import Service
from tests.conftest import wait_until
from tests.service.conftest import Trusted, champion, filler, service, settings, stores

__all__ = ["champion", "filler", "service", "settings", "stores"]  # fixtures


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client("http://here", key=service.key, transport=InProcess(service.app)) as opened:
        yield opened


@pytest.fixture
def async_client(service: Service) -> AsyncClient:
    return AsyncClient("http://here", key=service.key, transport=httpx.ASGITransport(service.app))


@pytest.fixture
def address(service: Service) -> Iterator[str]:
    """Where the app is served over a real socket."""
    with listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(Trusted(service), log_config=None, access_log=False)
        server = Server(config, ending=service.forecasts.streams.close)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started, "the server has started")
        yield url_of(listener)
        server.should_exit = True
        thread.join(timeout=30)
        assert not thread.is_alive()
