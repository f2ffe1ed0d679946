"""The limits of connections, over real sockets: how many, how slowly, and what outlives them."""

import os
import socket
import struct
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Thread

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from service.app.connection_limits import ConnectionLimits, TidyWebSocket, TimedHttp
from service.app.http_server import Server, listen, server_config
from service.settings import Settings
from tests.conftest import wait_until

QUICK = ConnectionLimits(head_seconds=0.3, stall_seconds=0.3, unread_seconds=0.3)
PATIENT = ConnectionLimits()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the size of the body; ``/much`` is a long answer."""
    if scope["type"] == "lifespan":
        for word in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{word}.complete"})
        return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        return
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-size", str(size).encode())]})
    for _ in range(3_000 if scope["path"] == "/much" else 1):
        await send({"type": "http.response.body", "body": b"a" * 100_000, "more_body": True})
    await send({"type": "http.response.body"})


@dataclass
class Served:
    """A server in a thread."""

    server: Server
    port: int

    @property
    def open(self) -> int:
        return len(self.server.server_state.connections)

    @property
    def busy(self) -> int:
        connections = self.server.server_state.connections
        return sum(isinstance(one, TimedHttp) and one.cycle is not None for one in connections)

    def connect(self, sent: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), 10)
        if sent:
            made.sendall(sent)
        return made

    def websocket(self) -> socket.socket:
        key = b64encode(os.urandom(16))
        made = self.connect(
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )
        assert made.recv(1000).startswith(b"HTTP/1.1 101")
        return made


@contextmanager
def serving(limits: ConnectionLimits) -> Iterator[Served]:
    with listen("127.0.0.1", 0) as listener:
        config = server_config(app, Settings())
        config.timeout_graceful_shutdown = 1
        server = Server(config, ending=lambda: None, limits=limits)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started, "the server has started")
        yield Served(server, listener.getsockname()[1])
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def everything(from_where: socket.socket) -> bytes:
    """Read until the other side closes."""
    read = b""
    try:
        while piece := from_where.recv(65536):
            read += piece
    except ConnectionError:
        pass
    return read


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["at-once", "after-another"])
def test_half_a_request_is_ended_and_its_connection_is_free_again(first: bytes) -> None:
    with serving(QUICK) as served, served.connect(first) as half:
        while first and not half.recv(200_000).endswith(b"0\r\n\r\n"):
            pass
        half.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-a: ")
        assert b"408 Request Timeout" in everything(half)
        wait_until(lambda: served.open == 0, "the connection is gone")


def test_a_head_is_ended_in_time_however_steadily_its_bytes_drip() -> None:
    with serving(QUICK) as served, served.connect(b"GET / HTTP/1.1\r\nX-a: ") as slow:
        slow.settimeout(0.05)
        answer, deadline = b"", time.monotonic() + 10
        while not answer and time.monotonic() < deadline:
            try:
                slow.sendall(b"a")
                answer = slow.recv(1000)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408")


def test_a_body_that_stalls_is_ended_and_one_that_comes_slowly_is_not() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3000\r\n\r\n"
    limits = replace(QUICK, stall_seconds=1.5, progress_bytes=100)
    with serving(limits) as served, served.connect(head) as slow, served.connect(head) as stalled:
        started = time.monotonic()
        stalled.sendall(b"a")
        for _ in range(30):  # longer than a stall in all
            slow.sendall(b"a" * 100)
            time.sleep(0.1)
        assert time.monotonic() - started > limits.stall_seconds
        assert b"x-size: 3000" in everything(slow)
        assert b"408" in everything(stalled)


def test_a_long_answer_that_is_read_goes_on_and_one_that_nobody_reads_is_cut_off() -> None:
    with serving(QUICK) as served, served.connect() as read, served.connect() as unread:
        unread.sendall(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        read.sendall(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: read.recv(1_000_000) and served.open == 1, "the unread one is gone")
        assert read.recv(100)


def test_headers_without_end_are_refused() -> None:
    with serving(PATIENT) as served:
        for beginning in (
            b"GET / HTTP/1.1\r\nX-a: ",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-a: ",
        ):
            with served.connect(beginning) as endless:
                endless.settimeout(10)
                sent = 0
                with suppress(ConnectionError):
                    while sent < 50_000_000:
                        sent += endless.send(b"a" * 10_000)
                assert sent < 50_000_000


@pytest.mark.parametrize(("proxies", "most"), [((), 3), (("127.0.0.0/8",), 5)], ids=["address", "proxy"])
def test_an_address_has_so_many_connections_and_a_trusted_proxy_as_many_as_there_are_in_all(
    proxies: tuple[str, ...], most: int
) -> None:
    limits = replace(PATIENT, most=5, most_per_address=3, proxies=proxies)
    with serving(limits) as served, ExitStack() as held:
        busy = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
        kept = [held.enter_context(served.connect(busy)) for _ in range(most)]
        wait_until(lambda: served.busy == most, "all are accepted")
        with served.connect() as refused:
            assert everything(refused).startswith(b"HTTP/1.1 503")
        kept[0].close()
        wait_until(lambda: served.open == most - 1, "one has left")
        assert httpx.get(f"http://127.0.0.1:{served.port}/").status_code == 200


@pytest.mark.parametrize("limits", [replace(PATIENT, most_per_address=3), replace(PATIENT, most=3)])
@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["half", "done"]
)
def test_half_requests_and_idle_connections_make_room_for_others(limits: ConnectionLimits, sent: bytes) -> None:
    with serving(limits) as served, ExitStack() as held:
        for _ in range(3):
            held.enter_context(served.connect(sent))
        wait_until(lambda: httpx.get(f"http://127.0.0.1:{served.port}/").status_code == 200, "there is room", 5)
        assert served.open <= 3


def test_a_websocket_message_beyond_the_limit_ends_its_connection_before_it_is_received() -> None:
    with serving(PATIENT) as served, served.websocket() as page:
        page.sendall(struct.pack("!BBQ", 0x81, 0x80 | 127, 1_000_001) + b"\0\0\0\0")
        assert struct.pack("!H", 1009) in everything(page)


def test_a_websocket_counts_as_a_connection_and_lets_go_of_half_a_message_when_it_ends() -> None:
    with serving(PATIENT) as served:
        page = served.websocket()
        (protocol,) = served.server.server_state.connections
        assert isinstance(protocol, TidyWebSocket)
        received = protocol.conn.reader
        page.sendall(struct.pack("!BBQ", 0x81, 0x80 | 127, 900_000) + b"\0\0\0\0" + b"a" * 800_000)
        wait_until(lambda: len(received.buffer) > 700_000, "half of it is here")
        page.close()
        wait_until(lambda: served.open == 0, "it has ended")
        assert len(received.buffer) == 0
