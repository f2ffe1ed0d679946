"""Real Modbus and S7 servers that a test may stop and start again on the same port."""

import asyncio
import gc
import warnings
from threading import Event, Thread
from typing import Any

from pymodbus.client import ModbusTcpClient
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice
from snap7.server import Server
from snap7.type import SrvArea

from tests.conftest import free_port


class _TcpServer(ModbusTcpServer):
    """Keeps its transports: the library leaves those of killed clients open."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.transports: list[Any] = []

    def callback_new_connection(self) -> Any:
        handler: Any = super().callback_new_connection()  # type: ignore[no-untyped-call]
        made = handler.connection_made

        def connection_made(transport: Any) -> None:
            self.transports.append(transport)
            made(transport)

        handler.connection_made = connection_made
        return handler


class ModbusServer:
    """Coils and discrete inputs 0 to 31, holding and input registers 0 to 119, all zero after each start.

    ``held`` are the first values of the registers, which have as many.
    """

    def __init__(self, port: int | None = None, held: list[int] | None = None) -> None:
        self.port = port or free_port()
        self._held = held or [0] * 120
        self.start()

    def start(self) -> None:
        started = Event()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_until_complete, args=(self._serve(started),), daemon=True)
        self._thread.start()
        assert started.wait(10)
        self._client = ModbusTcpClient("127.0.0.1", port=self.port)
        assert self._client.connect()

    async def _serve(self, started: Event) -> None:
        bits = [SimData(0, count=32, values=False, datatype=DataType.BITS)]
        words = [SimData(0, values=self._held, datatype=DataType.REGISTERS)]
        self._stopped = asyncio.Event()
        server = _TcpServer(SimDevice(1, (bits, bits, words, words)), address=("127.0.0.1", self.port))
        await server.serve_forever(background=True)
        started.set()
        await self._stopped.wait()
        await server.shutdown()  # type: ignore[no-untyped-call]
        for _ in range(20):  # the last connections are accepted, and closed, in later turns of the loop
            for transport in server.transports:
                transport.abort()
            await asyncio.sleep(0)

    def coil(self, address: int, *, value: bool) -> None:
        assert not self._client.write_coil(address, value, device_id=1).isError()

    def words(self, address: int, *values: int) -> None:
        assert not self._client.write_registers(address, list(values), device_id=1).isError()

    def stop(self) -> None:
        self._client.close()
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._loop.close()
        ModbusTcpServer.active_server = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # a transport that the library did not close
            gc.collect()


class S7Server:
    """A controller with data block 10 of 64 bytes and 16 bytes of flags; memory survives a restart."""

    def __init__(self, port: int | None = None, block: bytes = bytes(64)) -> None:
        self.port = port or free_port()
        self.block, self.flags = bytearray(block), bytearray(16)
        self.start()

    def start(self) -> None:
        self._server = Server(log=False)
        self._server.register_area(SrvArea.DB, 10, self.block)
        self._server.register_area(SrvArea.MK, 0, self.flags)
        self._server.start_to("127.0.0.1", self.port)

    def put(self, start: int, data: bytes) -> None:
        self.block[start : start + len(data)] = data

    def remove_block(self) -> None:
        self._server.unregister_area(SrvArea.DB, 10)

    def restore_block(self) -> None:
        self._server.register_area(SrvArea.DB, 10, self.block)

    def stop(self) -> None:
        self._server.stop()
