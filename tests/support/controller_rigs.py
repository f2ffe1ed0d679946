"""Controllers: OPC UA, Modbus and S7 servers in processes of their own."""

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, ClassVar

from edge_agent.settings import SourceKind
from tests.conftest import free_port
from tests.support.opcua_server import OpcuaServer
from tests.support.plc_servers import ModbusServer, S7Server
from tests.support.rig import Rig, parts
from tests.support.server_process import ServerProcess
from tests.support.source_run import SourceRun


class OpcuaRig(Rig):
    """All rigs share a server: its start takes long."""

    kind, password = SourceKind.OPCUA, "secret"
    mode: dict[str, Any]
    _server: ClassVar[ServerProcess | None] = None
    _port: ClassVar[int] = 0
    _folder: ClassVar[Path] = Path()

    def __init__(self, _folder: Path) -> None:
        if OpcuaRig._server is None:
            OpcuaRig._port, OpcuaRig._folder = free_port(), Path(mkdtemp(prefix="alarmcast-opcua-"))
            OpcuaRig._server = ServerProcess(OpcuaServer, folder=self._folder, port=self._port)
        self.call("reset")
        url = f"opc.tcp://127.0.0.1:{self._port}/"
        self.options = {"url": url, "publish_ms": 20, "username": "agent", **self.mode}

    def call(self, name: str, *values: Any) -> None:
        assert self._server is not None
        self._server.call(name, *values)

    def kill(self) -> None:
        assert self._server is not None
        self._server.kill()

    def start(self, password: str = "secret") -> None:  # noqa: S107
        assert self._server is not None
        self._server.start(folder=self._folder, port=self._port, password=password)

    def revoke(self) -> None:
        self.kill()
        self.start(password="another")  # noqa: S106

    def permit(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        """Leave the server to the next rig."""

    @classmethod
    def close_server(cls) -> None:
        if OpcuaRig._server is not None:
            OpcuaRig._server.kill()
            OpcuaRig._server = None
            rmtree(cls._folder)


class OpcuaTags(OpcuaRig):
    mode = {"mode": "tags", "signals": [{"as": "code", "node": "ns=2;s=code"}]}  # noqa: RUF012

    def raise_alarm(self, code: int) -> None:
        self.call("write", "code", code)

    def flood(self, count: int, run: SourceRun) -> list[int]:
        for part in parts(count, 500, run):
            self.call("write_all", "code", part)
        return list(range(2, count + 2))

    def remove(self) -> None:
        self.call("remove", "code")

    def restore(self) -> None:
        self.call("restore", "code", 0)

    def corrupt(self) -> None:
        self.call("write", "code", 2**32 - 1)


class OpcuaPackml(OpcuaRig):
    mode = {"mode": "packml", "node": "ns=2;s=Admin"}  # noqa: RUF012

    def raise_alarm(self, code: int) -> None:
        self.call("packml", code)

    def flood(self, count: int, run: SourceRun) -> list[int]:
        for part in parts(count, 100, run):
            self.call("packml", *part)
        return list(range(2, count + 2))

    def remove(self) -> None:
        self.call("remove", "Alarm")

    def restore(self) -> None:
        self.call("restore_packml", "Alarm")

    def corrupt(self) -> None:
        self.call("packml", -5)


class OpcuaConditions(OpcuaRig):
    mode = {"mode": "conditions"}  # noqa: RUF012

    def raise_alarm(self, code: int) -> None:
        self.call("conditions_active", str(code))

    def flood(self, count: int, run: SourceRun) -> list[int]:
        """Raise and clear 250 conditions over and over: each is two changes."""
        codes = list(range(2, 252))
        for _ in parts(count // 2, len(codes), run):
            self.call("condition_series", [str(code) for code in codes])
        return codes * (count // 2 // len(codes))

    def corrupt(self) -> None:
        self.call("conditions_active", "9" * 400)


class ModbusRig(Rig):
    kind = SourceKind.MODBUS

    def __init__(self, _folder: Path) -> None:
        self._words, self._port = [0] * 110, free_port()
        bits = {"as": "bits", "table": "holding", "address": 0, "count": 100, "code": 1}
        code = {"as": "code", "table": "holding", "address": 108, "type": "uint32"}
        self.options = {
            "url": f"modbus://127.0.0.1:{self._port}",
            "poll_seconds": 0.01,
            "signals": [bits, code],
        }
        self.server = ServerProcess(ModbusServer, port=self._port, held=self._words)

    def raise_alarm(self, code: int) -> None:
        word, bit = divmod(code - 1, 16)
        self._words[word] |= 1 << bit
        self.server.call("words", word, self._words[word])

    def flood(self, count: int, run: SourceRun) -> list[int]:
        codes = list(range(1, 1601))
        for _ in parts(count, len(codes), run):
            self.server.call("words", 0, *[0] * 100)
            run.until(lambda run: len(run.cleared) == len(run.raised), "all bits are cleared")
            self.server.call("words", 0, *[0xFFFF] * 100)
        return codes * -(-count // len(codes))

    def kill(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start(port=self._port, held=self._words)

    def remove(self) -> None:
        self.kill()
        self.server.start(port=self._port, held=self._words[:50])

    def restore(self) -> None:
        self.kill()
        self.start()

    def corrupt(self) -> None:
        self.server.call("words", 108, 0xFFFF, 0xFFFF)


class S7Rig(Rig):
    kind = SourceKind.S7

    def __init__(self, _folder: Path) -> None:
        self._block, self._port = bytearray(256), free_port()
        bits = {"as": "bits", "address": "DB10.DBB0", "count": 200, "code": 1}
        code = {"as": "code", "address": "DB10.DBD220"}
        self.options = {"url": f"127.0.0.1:{self._port}", "poll_seconds": 0.01, "signals": [bits, code]}
        self.server = ServerProcess(S7Server, port=self._port, block=bytes(self._block))

    def raise_alarm(self, code: int) -> None:
        byte, bit = divmod(code - 1, 8)
        self._block[byte] |= 1 << bit
        self.server.call("put", byte, bytes(self._block[byte : byte + 1]))

    def flood(self, count: int, run: SourceRun) -> list[int]:
        codes = list(range(1, 1601))
        for _ in parts(count, len(codes), run):
            self.server.call("put", 0, bytes(200))
            run.until(lambda run: len(run.cleared) == len(run.raised), "all bits are cleared")
            self.server.call("put", 0, b"\xff" * 200)
        return codes * -(-count // len(codes))

    def kill(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start(port=self._port, block=bytes(self._block))

    def remove(self) -> None:
        self.server.call("remove_block")

    def restore(self) -> None:
        self.server.call("restore_block")

    def corrupt(self) -> None:
        self.server.call("put", 220, b"\xff" * 4)
