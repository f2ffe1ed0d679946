"""Poll the registers and coils of a Modbus TCP device."""

import logging
from typing import Any, Literal

from pydantic import Field
from pymodbus.client import ModbusTcpClient
from pymodbus.exceptions import ModbusException

from edge_agent.sources import Context
from edge_agent.sources.monitor import Monitored
from edge_agent.sources.polling import Polling
from edge_agent.sources.signals import (
    Options,
    Signal,
    Unreachable,
    Unreadable,
    by_address,
    host_and_port,
    parse_options,
)

_TIMEOUT_S = 2.0
_WORD_BITS = 16
_REASONS = {1: "the device does not know this table", 2: "the device has no such address", 3: "wrong count"}


class Registers(Signal):
    """Registers or coils from an address on, counted from 0."""

    table: Literal["coil", "discrete", "holding", "input"]
    address: int = Field(ge=0, le=65535)
    count: int = Field(default=1, ge=1, le=2000)
    type: Literal["uint16", "uint32", "uint32_swapped"] = "uint16"

    @property
    def title(self) -> str:
        return f"{self.table} {self.address}"


class ModbusOptions(Options):
    """The table ``[modbus]``."""

    url: str
    unit: int = Field(default=1, ge=0, le=255)
    poll_seconds: float = Field(default=0.5, gt=0, le=3600)
    debounce_seconds: float = Field(default=0.0, ge=0, le=3600)
    signals: list[Registers] = Field(min_length=1)


class ModbusDevice:
    """A connection to one unit of a device."""

    def __init__(self, options: ModbusOptions) -> None:
        self._host, self._port = host_and_port(options.url, "modbus", 502)
        self._unit = options.unit
        self._signals = by_address((signal.title, signal) for signal in options.signals)
        self._client: ModbusTcpClient | None = None
        self.title = f"modbus://{self._host}:{self._port}"
        self.signals = list(self._signals)

    def open(self) -> None:
        """Connect."""
        self._client = ModbusTcpClient(self._host, port=self._port, timeout=_TIMEOUT_S, retries=0)
        if not self._client.connect():
            raise Unreachable("no connection; check address, port and network")

    def read(self, signal: str) -> set[str]:
        """Read a signal with one request."""
        found = self._signals[signal]
        if found.table in ("coil", "discrete"):
            bits = self._request(found, found.count).bits[: found.count]
            return found.active_bits(bits, found.title)
        words = 1 if found.type == "uint16" else 2
        registers = self._request(found, found.count * words).registers
        values = _values(registers, found.type)
        return found.active_values(values, _WORD_BITS * words, found.title)

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _request(self, signal: Registers, count: int) -> Any:
        if self._client is None:
            raise Unreachable("not connected")
        response = request(self._client, signal.table, signal.address, count, self._unit)
        if response.isError():
            number = response.exception_code
            raise Unreadable(_REASONS.get(number, f"the device answers with exception {number}"))
        return response


def request(client: ModbusTcpClient, table: str, address: int, count: int, unit: int) -> Any:
    """Read a table of a device; an exception response is returned, too."""
    functions = {
        "coil": client.read_coils,
        "discrete": client.read_discrete_inputs,
        "holding": client.read_holding_registers,
        "input": client.read_input_registers,
    }
    try:
        return functions[table](address, count=count, device_id=unit)
    except (ModbusException, OSError) as error:
        raise Unreachable(f"no answer: {error}") from None


def build(options: dict[str, Any], context: Context) -> Monitored:
    """Return the source of the table ``[modbus]``."""
    logging.getLogger("pymodbus").setLevel(logging.CRITICAL)  # its errors are reported as findings and gaps
    parsed = parse_options(ModbusOptions, options, "modbus")
    device = Polling(ModbusDevice(parsed), parsed.poll_seconds)
    return Monitored(device, context, debounce=parsed.debounce_seconds)


def _values(registers: list[int], kind: str) -> list[int]:
    if kind == "uint16":
        return registers
    pairs = zip(registers[::2], registers[1::2], strict=True)
    return [(low << 16 | high) if kind == "uint32_swapped" else (high << 16 | low) for high, low in pairs]
