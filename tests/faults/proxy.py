"""A link that can be bad in every way we know: cut, half-open, slow, narrow, or deaf to acks.

Bytes pass unread unless acks are to be lost or looked at; then the packets of MQTT are told apart.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread

HOST = "127.0.0.1"
_CHUNK = 65_536
_PUBLISH, _PUBACK = 3, 4


@dataclass(eq=False)
class Connection:
    """One client and its connection to the broker; ``dead`` swallows everything and tells nobody."""

    writers: list[asyncio.StreamWriter]
    dead: bool = False
    under_way: Counter[int] = field(default_factory=Counter)

    def close(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Proxy:
    """Listens on a port of its own and passes everything on to ``target``, as badly as it is told to."""

    def __init__(self, target: int, *, mqtt: bool = True) -> None:
        self.target, self.port = target, 0
        self._mqtt = mqtt  # or any bytes, of which it understands nothing
        self.delay = 0.0  # seconds every piece waits
        self.bytes_per_second: float | None = None
        self.lose_acks = 0.0  # share of the service's acks that never reach an agent
        self.lost_acks = self.foreign_acks = 0
        self._refusing = False
        self._connections: set[Connection] = set()
        self._chance = random.Random(5)  # noqa: S311
        self._loop = asyncio.new_event_loop()
        self._ready = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self._call(self._loop.stop)
        self._thread.join()

    def cut(self) -> None:
        """End every connection and let nobody in until :meth:`heal`."""
        self._refusing = True
        self.drop()

    def heal(self) -> None:
        """Be a good link again; what is half-open stays so."""
        self._refusing, self.delay, self.bytes_per_second, self.lose_acks = False, 0.0, None, 0.0

    def drop(self) -> None:
        """End every connection; new ones are welcome."""
        self._call(self._end_all)

    def half_open(self) -> None:
        """Let every present connection look open for ever while nothing passes; new ones are well."""

        def kill() -> None:
            for connection in self._connections:
                connection.dead = True

        self._call(kill)

    def _end_all(self) -> None:
        for connection in list(self._connections):
            connection.close()

    def _call(self, what: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(what)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, HOST, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        self._end_all()
        server.close()
        pending = asyncio.all_tasks(self._loop)
        for task in pending:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            from_broker, to_broker = await asyncio.open_connection(HOST, self.target)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection([writer, to_broker])
        self._connections.add(connection)
        up = self._pass_on(reader, to_broker, connection, self._upwards)
        down = self._pass_on(from_broker, writer, connection, self._downwards)
        with suppress(asyncio.CancelledError):  # the proxy is stopped
            await asyncio.gather(up, down)
        connection.close()
        self._connections.discard(connection)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: Connection,
        look: Callable[[bytes, Connection], bool],
    ) -> None:
        packets = Packets()
        try:
            while data := await reader.read(_CHUNK):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if self.bytes_per_second:
                    await asyncio.sleep(len(data) / self.bytes_per_second)
                passed = data
                if self._mqtt:
                    passed = b"".join(packet for packet in packets.of(data) if look(packet, connection))
                if passed and not connection.dead:
                    writer.write(passed)
                    await writer.drain()
        except OSError:
            pass
        if not connection.dead:
            connection.close()

    def _upwards(self, packet: bytes, connection: Connection) -> bool:
        if packet[0] >> 4 == _PUBACK:
            body = packet[_header(packet) :]
            mid = int.from_bytes(body[:2], "big")
            # An ack for what was not delivered on this very connection acks some other message.
            if connection.under_way[mid] == 0:
                self.foreign_acks += 1
            else:
                connection.under_way[mid] -= 1
        return True

    def _downwards(self, packet: bytes, connection: Connection) -> bool:
        if packet[0] >> 4 != _PUBLISH:
            return True
        body = packet[_header(packet) :]
        length = int.from_bytes(body[:2], "big")
        if packet[0] & 0b110:
            connection.under_way[int.from_bytes(body[2 + length : 4 + length], "big")] += 1
        if body[2 : 2 + length].endswith(b"/acks") and self._chance.random() < self.lose_acks:
            self.lost_acks += 1
            return False
        return True


class Packets:
    """Cuts a stream of bytes into the packets of MQTT."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> Iterator[bytes]:
        """Yield the packets that are whole now, and keep what is not."""
        self._rest += data
        while (size := _size(self._rest)) and len(self._rest) >= size:
            yield self._rest[:size]
            self._rest = self._rest[size:]


def _header(packet: bytes) -> int:
    """Return how many bytes stand before a packet's body."""
    place = 1
    while packet[place] & 128:
        place += 1
    return place + 1


def _size(data: bytes) -> int:
    """Return the length of the packet at the beginning, or 0 while its header is not all there."""
    length = 0
    for place, byte in enumerate(data[1:5]):
        length |= (byte & 127) << (7 * place)
        if not byte & 128:
            return 2 + place + length
    return 0
