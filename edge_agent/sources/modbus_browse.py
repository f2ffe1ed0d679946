"""Find registers and coils of a Modbus device whose values change as alarms do."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from pymodbus.client import ModbusTcpClient

from edge_agent.errors import ConfigRejected
from edge_agent.sources.discovery import MAX_SIGNALS, Access, Proposal, toml_text
from edge_agent.sources.modbus import request
from edge_agent.sources.signals import Unreachable, host_and_port

_TABLES = ("coil", "discrete", "holding", "input")
_ADDRESSES = 10_000
_CHUNK, _PIECE = 100, 10
_POLL_S = 0.25
_MAX_VALUES = 20  # more are a measured value or a counter
_TIMEOUT_S = 2.0
_HINT = (
    "no value changed as alarms do; trigger an alarm while the command runs, watch longer with --seconds, "
    "or take the addresses from the manual: docs/connect/modbus.md"
)


class Range(NamedTuple):
    """Addresses that can be read with one request."""

    table: str
    address: int
    size: int


@dataclass
class History:
    """The values of an address, in the order of their changes."""

    values: list[int] = field(default_factory=list)

    def add(self, value: int) -> None:
        if not self.values or self.values[-1] != value:
            self.values.append(value)

    def meaning(self, polls: int) -> str | None:
        """Return ``bits`` or ``code`` for a register that looks like alarms."""
        changes = len(self.values) - 1
        if changes < 1 or len(set(self.values)) > _MAX_VALUES or (polls > _MAX_VALUES and changes > polls / 2):
            return None
        single = all((before ^ after).bit_count() == 1 for before, after in pairwise(self.values))
        return "bits" if single and any(value.bit_count() > 1 for value in self.values) else "code"


class _Device:
    def __init__(self, url: str) -> None:
        address, _, unit = url.removeprefix("modbus://").partition("/")
        if unit and not unit.isdigit():
            raise ConfigRejected(f"{url} has no unit number; write modbus://192.168.0.10:502/1.")
        self.unit = int(unit or 1)
        self.host, self.port = host_and_port(address, "modbus", 502)
        self._client = ModbusTcpClient(self.host, port=self.port, timeout=_TIMEOUT_S, retries=0)
        if not self._client.connect():
            raise Unreachable("no connection")

    def read(self, where: Range) -> list[int] | None:
        """Return the values of a range, None if the device refuses it."""
        response = request(self._client, where.table, where.address, where.size, self.unit)
        if response.isError():
            return None
        if where.table in ("coil", "discrete"):
            return [int(bit) for bit in response.bits[: where.size]]
        return list(response.registers)

    def close(self) -> None:
        self._client.close()


def propose(access: Access, seconds: float) -> Proposal:
    """Propose a signal for each address whose value changes as alarms do."""
    logging.getLogger("pymodbus").setLevel(logging.CRITICAL)
    device = _Device(access.url)
    try:
        ranges = list(_ranges(device))
        histories, polls = _watch(device, ranges, seconds)
    finally:
        device.close()
    found = {
        where: meaning for where, history in histories.items() if (meaning := history.meaning(polls)) is not None
    }
    summary = (
        f"{sum(where.size for where in ranges)} addresses read {polls} times: {len(found)} look like alarms, "
        f"{sum(len(history.values) > 1 for history in histories.values()) - len(found)} like measured values"
    )
    if not found:
        return Proposal("modbus", summary, [], hint=_HINT)
    lines = [f"url = {toml_text(f'{device.host}:{device.port}')}", f"unit = {device.unit}", "poll_seconds = 0.5"]
    lines += [f"# readable: {one.table} {one.address} to {one.address + one.size - 1}" for one in _joined(ranges)]
    names = []
    for number, ((table, address), meaning) in enumerate(list(found.items())[:MAX_SIGNALS], 1):
        lines += ["", "[[modbus.signals]]", f'table = "{table}"', f"address = {address}"]
        if table in ("coil", "discrete"):
            names.append(f"{table} {address}")
            lines += ['as = "flag"', f'name = "{table} {address}"']
        elif meaning == "bits":
            lines += ['as = "bits"  # each change was one bit', f"code = {number * 100}  # of bit 0"]
        else:
            seen = ", ".join(map(str, histories[table, address].values[:_MAX_VALUES]))
            lines += [f'as = "code"  # values: {seen}; with bits each bit is an alarm']
    return Proposal("modbus", summary, lines, names)


def _ranges(device: _Device) -> Iterator[Range]:
    """Yield what can be read; the end of a readable part is searched in pieces."""
    for table in _TABLES:
        for first in range(0, _ADDRESSES, _CHUNK):
            whole = Range(table, first, _CHUNK)
            if device.read(whole) is not None:
                yield whole
                continue
            for start in range(first, first + _CHUNK, _PIECE):
                piece = Range(table, start, _PIECE)
                if device.read(piece) is None:
                    break
                yield piece


def _watch(device: _Device, ranges: list[Range], seconds: float) -> tuple[dict[tuple[str, int], History], int]:
    histories: dict[tuple[str, int], History] = {}
    polls, until = 0, time.monotonic() + seconds
    while polls == 0 or time.monotonic() < until:
        began = time.monotonic()
        for where in ranges:
            for offset, value in enumerate(device.read(where) or []):
                histories.setdefault((where.table, where.address + offset), History()).add(value)
        polls += 1
        time.sleep(max(0.0, min(_POLL_S, until - time.monotonic()) - (time.monotonic() - began)))
    return histories, polls


def _joined(ranges: list[Range]) -> list[Range]:
    joined: list[Range] = []
    for one in ranges:
        last = joined[-1] if joined else None
        if last is not None and last.table == one.table and last.address + last.size == one.address:
            joined[-1] = Range(last.table, last.address, last.size + one.size)
        else:
            joined.append(one)
    return joined
