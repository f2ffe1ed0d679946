"""Poll data blocks, flags, inputs and outputs of a Siemens S7 controller."""

import logging
import re
from typing import Any, NamedTuple

from pydantic import Field, field_validator
from snap7.client import Client
from snap7.error import S7ConnectionError, S7Error, S7TimeoutError
from snap7.type import Area

from edge_agent.sources import Context
from edge_agent.sources.monitor import Monitored
from edge_agent.sources.polling import Polling
from edge_agent.sources.signals import (
    Options,
    Signal,
    Unreachable,
    Unreadable,
    bits_of,
    by_address,
    host_and_port,
    parse_options,
)

_DATA_BLOCK = re.compile(r"DB(\d{1,5})\.DB([XBWD])(\d{1,5})(?:\.([0-7]))?")
_OTHER = re.compile(r"([MIQ])([BWD]?)(\d{1,5})(?:\.([0-7]))?")
_AREAS = {"M": Area.MK, "I": Area.PE, "Q": Area.PA}
_SIZES = {"X": 1, "": 1, "B": 1, "W": 2, "D": 4}


class Place(NamedTuple):
    """Where a signal is in the controller's memory."""

    area: Area
    block: int
    start: int
    size: int
    bit: int | None


class S7Signal(Signal):
    """``DB10.DBX0.3`` is a bit, ``DB10.DBB0``, ``DB10.DBW20`` and ``DB10.DBD4`` are 1, 2 and 4 bytes."""

    address: str
    count: int = Field(default=1, ge=1, le=400)

    @field_validator("address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        place(text)
        return text


class S7Options(Options):
    """The table ``[s7]``."""

    url: str
    rack: int = Field(default=0, ge=0, le=7)
    slot: int = Field(default=1, ge=0, le=31)
    poll_seconds: float = Field(default=0.5, gt=0, le=3600)
    debounce_seconds: float = Field(default=0.0, ge=0, le=3600)
    signals: list[S7Signal] = Field(min_length=1)


def place(address: str) -> Place:
    """Return the place of an address, or raise ``ValueError`` with a sentence."""
    block = _DATA_BLOCK.fullmatch(address)
    other = _OTHER.fullmatch(address)
    if block:
        area, number, width, start, bit = Area.DB, int(block[1]), block[2], int(block[3]), block[4]
    elif other:
        area, number, width, start, bit = _AREAS[other[1]], 0, other[2], int(other[3]), other[4]
    else:
        raise ValueError(f"{address!r} is not an address like DB10.DBX0.3, DB10.DBW20 or M10.0")
    if (bit is not None) != (width in ("X", "")):
        raise ValueError(f"{address!r} has a bit where it has a size, or neither; write DB10.DBX0.3 or DB10.DBW20")
    return Place(area, number, start, _SIZES[width], None if bit is None else int(bit))


class S7Device:
    """A connection to one controller."""

    def __init__(self, options: S7Options) -> None:
        self._host, self._port = host_and_port(options.url, "s7", 102)
        self._rack, self._slot = options.rack, options.slot
        self._signals = by_address((signal.address, signal) for signal in options.signals)
        self._client: Client | None = None
        self.title = f"s7://{self._host}:{self._port}"
        self.signals = list(self._signals)

    def open(self) -> None:
        """Connect."""
        self._client = Client()
        try:
            self._client.connect(self._host, self._rack, self._slot, self._port)
        except (S7Error, OSError, RuntimeError) as error:
            raise Unreachable(f"no connection: {error}; check address, rack, slot and PUT/GET access") from None

    def read(self, signal: str) -> set[str]:
        """Read a signal with one request."""
        found = self._signals[signal]
        at = place(found.address)
        if at.bit is not None:
            bits = bits_of(self._bytes(at, (at.bit + found.count + 7) // 8), 8)
            return found.active_bits(bits[at.bit : at.bit + found.count], signal)
        data = self._bytes(at, at.size * found.count)
        values = [int.from_bytes(data[n : n + at.size], "big") for n in range(0, len(data), at.size)]
        return found.active_values(values, 8 * at.size, signal)

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.disconnect()
            self._client = None

    def _bytes(self, at: Place, size: int) -> bytes:
        if self._client is None:
            raise Unreachable("not connected")
        try:
            return bytes(self._client.read_area(at.area, at.block, at.start, size))
        except (S7ConnectionError, S7TimeoutError, OSError) as error:
            raise Unreachable(f"no answer: {error}") from None
        except (S7Error, RuntimeError, ValueError) as error:
            if not self._client.get_connected():
                raise Unreachable(f"no answer: {error}") from None
            raise Unreadable(
                f"the controller refuses: {error}; is the block large enough and not optimised?"
            ) from None


def build(options: dict[str, Any], context: Context) -> Monitored:
    """Return the source of the table ``[s7]``."""
    logging.getLogger("snap7").setLevel(logging.CRITICAL)  # its errors are reported as findings and gaps
    parsed = parse_options(S7Options, options, "s7")
    device = Polling(S7Device(parsed), parsed.poll_seconds)
    return Monitored(device, context, debounce=parsed.debounce_seconds)
