"""Limits of the API's connections: how many there may be, and how long a request may take to arrive."""

import asyncio
import ipaddress
import logging
import resource
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from service.http.rate_limit import network_of
from service.settings import Settings

log = logging.getLogger(__name__)

WEBSOCKET_MESSAGE_BYTES: Final = 1_000_000  # what the pages' scripts send at most; files are uploaded over HTTP
_OTHER_FILES = 200  # that the process needs besides: database, broker, logs, modules
_TLS_HANDSHAKE_SECONDS = 10.0
_IDLE_SECONDS = 1.0  # a connection that waits longer for its request makes room for others
_PAUSE_SECONDS = 0.5  # before the next try, when the system has no file descriptor left
UNREAD: Final = "unread answer"
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 10\r\n"
    b"Connection: close\r\nContent-Length: 62\r\n\r\n"
    b"Too many connections are open. Close some, or try again later."
)


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections may be open, and how slowly bytes may come and go.

    A body may take as long as it likes, as long as it brings ``progress_bytes`` in every ``stall_seconds``.
    """

    most: int = 800
    most_per_address: int = 200
    proxies: tuple[str, ...] = ()  # networks whose connections are only counted in all
    head_seconds: float = 10.0
    head_bytes: int = 65_536  # of a request's line and headers, and of the trailers after its body
    stall_seconds: float = 30.0
    progress_bytes: int = 1_000
    unread_seconds: float = 60.0  # in which a client may take nothing of what was written to it

    @classmethod
    def of(cls, settings: Settings, proxies: list[str]) -> "ConnectionLimits":
        """Return the limits that the settings ask for, as far as the system lets the process open files."""
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = settings.connection_limit
        if allowed != resource.RLIM_INFINITY and most > allowed - _OTHER_FILES:
            most = max(10, allowed - _OTHER_FILES)
            log.warning(
                "connection_limit is %d, but the process may open %d files: %d connections are allowed. "
                "Raise the limit of open files (ulimit -n, LimitNOFILE)",
                settings.connection_limit,
                allowed,
                most,
            )
        return cls(most, min(most, settings.connections_per_address), tuple(proxies))

    def is_proxy(self, address: str) -> bool:
        """Say whether an address is that of a trusted proxy, which brings the requests of many."""
        try:
            found = ipaddress.ip_address(address)
            return any(found in ipaddress.ip_network(one, strict=False) for one in self.proxies)
        except ValueError:
            return "*" in self.proxies


@dataclass
class Unread:
    """What was written to a client and not taken by it yet."""

    size: int = 0
    since: float = 0.0

    def seconds(self, transport: asyncio.Transport, now: float) -> float:
        """Return for how long the client has taken nothing."""
        size = transport.get_write_buffer_size()
        if size == 0 or size != self.size:
            self.size, self.since = size, now
        return now - self.since


class TimedHttp(HttpToolsProtocol):
    """A connection whose requests must arrive in time; :meth:`overdue` says what did not."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._since = self._progress_at = self.loop.time()
        self._waits_for_head = True
        self._head_size = self._progress = 0
        self._brought_body = False
        self._unread = Unread()
        self.limits = ConnectionLimits()

    def data_received(self, data: bytes) -> None:
        """Take bytes; refuse more of them than a head may have."""
        now = self.loop.time()
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and not self._waits_for_head:
            self._waits_for_head, self._since = True, now
        self._progress += len(data)
        if self._progress >= self.limits.progress_bytes:
            self._progress, self._progress_at = 0, now
        self._brought_body = False
        super().data_received(data)
        self._head_size = 0 if self._brought_body else self._head_size + len(data)
        if self._head_size > self.limits.head_bytes and not self.transport.is_closing():
            self.refuse("431 Request Header Fields Too Large", "The request's headers are too large.")

    def on_headers_complete(self) -> None:
        """Note that the head is here, and with it the beginning of the body's time."""
        self._waits_for_head = False
        self._progress, self._progress_at = 0, self.loop.time()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._brought_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request; what comes next is another one."""
        self._brought_body = True
        super().on_message_complete()

    def idle_since(self) -> float | None:
        """Return since when it has waited for a request, the first or the next, or None while there is one."""
        is_idle = self._waits_for_head or self.cycle is None or self.cycle.response_complete
        return self._since if is_idle and not self.transport.is_closing() else None

    def on_response_complete(self) -> None:
        """Note since when it waits for the next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    def overdue(self, now: float) -> str | None:
        """Return what did not come or go in time, or None."""
        limits, cycle = self.limits, self.cycle
        if self._unread.seconds(self.transport, now) > limits.unread_seconds:
            return UNREAD
        if self._waits_for_head:
            return "unfinished head" if now - self._since > limits.head_seconds else None
        is_receiving = cycle is not None and not cycle.response_complete and cycle.more_body
        if not is_receiving or self.flow.read_paused:
            self._progress_at = now
            return None
        return "stalled body" if now - self._progress_at > limits.stall_seconds else None

    def refuse(self, status: str, sentence: str) -> None:
        """Answer with a status, unless an answer has begun, and close."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if self._head_size if is_idle else not self.cycle.response_started:
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            self.transport.write(f"{head}Content-Length: {len(sentence)}\r\n\r\n{sentence}".encode())
        self.transport.close()


class TidyWebSocket(WebSocketsSansIOProtocol):
    """A websocket that lets go of half a message when its connection ends, and not when garbage is collected."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unread = Unread()
        self.limits = ConnectionLimits()

    def overdue(self, now: float) -> str | None:
        """Return what did not go in time, or None; pings say whether a client still answers."""
        return UNREAD if self._unread.seconds(self.transport, now) > self.limits.unread_seconds else None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was received."""
        super().connection_lost(exc)
        self.frames.clear()
        self.conn.reader.discard()


@dataclass
class Acceptor:
    """Accepts connections as far as the limits allow, and ends those whose requests do not arrive in time."""

    config: uvicorn.Config
    limits: ConnectionLimits
    make: Callable[[], asyncio.Protocol]
    open: set[Any]  # the protocols of the connections that are open
    refused: int = 0
    _starting: dict[asyncio.Protocol, str] = field(default_factory=dict)  # TLS is under way; by network
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, listeners: list[socket.socket]) -> None:
        """Begin to accept."""
        for listener in listeners:
            listener.settimeout(0)
            self._run(self._accept(listener))

    async def stop(self) -> None:
        """Accept no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def end_overdue(self) -> None:
        """Close the connections whose requests did not arrive in time, or whose answers are not read."""
        now = asyncio.get_running_loop().time()
        for one in list(self.open):
            why = one.overdue(now) if isinstance(one, TimedHttp | TidyWebSocket) else None
            if why is None:
                continue
            log.debug("closed a connection of %s: %s", one.client[0] if one.client else "?", why)
            if why == UNREAD or one.transport.is_closing():
                one.transport.abort()
            elif isinstance(one, TimedHttp):
                one.refuse("408 Request Timeout", "The request did not arrive in time.")

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("cannot accept a connection: %s", error.strerror)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            address = str(peer[0])
            if self._is_full(address) and not self._make_room(address):
                self._turn_away(accepted)
                continue
            protocol = self.make()
            self._starting[protocol] = network_of(address)
            self._run(self._begin(accepted, protocol))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_full(self, address: str) -> bool:
        starting = {one: network for one, network in self._starting.items() if one not in self.open}
        if len(self.open) + len(starting) >= self.limits.most:
            return True
        if self.limits.is_proxy(address):
            return False
        network = network_of(address)
        same = sum(one.client is not None and network_of(one.client[0]) == network for one in self.open)
        return same + list(starting.values()).count(network) >= self.limits.most_per_address

    def _make_room(self, address: str) -> bool:
        """Close the connection that has been idle longest; return whether there was one.

        Only one of the same network, unless all places are taken: slow requests must not block others.
        """
        network = None if len(self.open) >= self.limits.most else network_of(address)
        idle: list[tuple[float, TimedHttp]] = []
        for one in self.open:
            since = one.idle_since() if isinstance(one, TimedHttp) else None
            if since is not None and (network is None or (one.client and network_of(one.client[0]) == network)):
                idle.append((since, one))
        since, oldest = min(idle, key=lambda found: found[0], default=(0.0, None))
        if oldest is None or asyncio.get_running_loop().time() - since < _IDLE_SECONDS:
            return False
        oldest.transport.abort()
        return True

    def _turn_away(self, accepted: socket.socket) -> None:
        self.refused += 1
        with accepted:
            if self.config.ssl is None:
                try:
                    accepted.settimeout(0)
                    accepted.send(_REFUSAL)
                except OSError:
                    pass  # it has left already

    async def _begin(self, accepted: socket.socket, protocol: asyncio.Protocol) -> None:
        loop, tls = asyncio.get_running_loop(), self.config.ssl
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting = {} if tls is None else {"ssl_handshake_timeout": _TLS_HANDSHAKE_SECONDS}
            await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=tls, **waiting)
        except (OSError, TimeoutError):  # it left, or speaks no TLS
            accepted.close()
        finally:
            del self._starting[protocol]
