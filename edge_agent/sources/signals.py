"""Signals of a controller: bits that are alarms each, or words that contain the active code."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edge_agent.errors import ConfigRejected

_MAX_CODE = 2**31 - 1


class Unreadable(Exception):
    """One signal cannot be read as alarms; the others can."""


class Unreachable(Exception):
    """The source does not answer."""


class Options(BaseModel):
    """The table of a source in ``edge.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Signal(Options):
    """A signal; ``as`` says what its value means.

    ``flag``: true while the alarm is active. ``bits``: one alarm per bit. ``code``: the active code, 0 for none.
    ``code`` is the number of a flag, of the first bit, or what is added to a code. Without it the alarm has the
    name of the signal.
    """

    meaning: Literal["flag", "bits", "code"] = Field(alias="as")
    name: str | None = Field(default=None, min_length=1, max_length=200)
    code: int | None = Field(default=None, ge=0, le=_MAX_CODE)

    def active_bits(self, bits: Sequence[bool], address: str) -> set[str]:
        """Return the names of the alarms whose bits are set."""
        if self.code is not None:
            return {str(self.code + number) for number, bit in enumerate(bits) if bit}
        base = self.name or address
        if len(bits) == 1 and self.meaning == "flag":
            return {base} if bits[0] else set()
        return {f"{base}.{number}" for number, bit in enumerate(bits) if bit}

    def active_codes(self, values: Sequence[int]) -> set[str]:
        """Return the names of the codes that words contain."""
        wrong = next((value for value in values if not 0 <= value + (self.code or 0) <= _MAX_CODE), None)
        if wrong is not None:
            raise Unreadable(f"{wrong} is not an alarm code (a whole number from 0 to {_MAX_CODE})")
        if self.code is None and self.name is not None:
            return {f"{self.name}.{value}" for value in values if value}
        return {str(value + (self.code or 0)) for value in values if value}

    def active_values(self, values: Sequence[int], width: int, address: str) -> set[str]:
        """Return the names of the active alarms in words of so many bits."""
        if self.meaning == "code":
            return self.active_codes(values)
        bits = bits_of(values, width) if self.meaning == "bits" else [value != 0 for value in values]
        return self.active_bits(bits, address)


def bits_of(words: Sequence[int], width: int) -> list[bool]:
    """Return the bits of words, the lowest bit of the first word first."""
    return [bool(word >> bit & 1) for word in words for bit in range(width)]


Kind = TypeVar("Kind", bound=Signal)


def by_address(signals: Iterable[tuple[str, Kind]]) -> dict[str, Kind]:
    """Return signals by their address; each address may be used once."""
    found: dict[str, Kind] = {}
    for address, signal in signals:
        if address in found:
            raise ConfigRejected(f"Two signals have the address {address}; give each its own.")
        found[address] = signal
    return found


Model = TypeVar("Model", bound=BaseModel)


def parse_options(model: type[Model], options: dict[str, Any], table: str) -> Model:
    """Validate the table of a source, or raise :class:`ConfigRejected` with one sentence."""
    try:
        return model.model_validate(options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join([table, *map(str, first["loc"])])
        if first["type"] == "missing":
            raise ConfigRejected(f"The setting {key} is missing.") from None
        if first["type"] == "extra_forbidden":
            raise ConfigRejected(f"There is no setting {key}; see docs/connect.") from None
        raise ConfigRejected(
            f"The setting {key} is wrong: {first['msg'].removeprefix('Value error, ')}."
        ) from None


def host_and_port(url: str, scheme: str, port: int) -> tuple[str, int]:
    """Split ``scheme://host:port``; scheme and port may be missing."""
    host, colon, number = url.removeprefix(f"{scheme}://").rstrip("/").rpartition(":")
    if not colon:
        return number, port
    if not number.isdigit():
        raise ConfigRejected(f"{url!r} is not an address like {scheme}://192.168.0.10:{port}.")
    return host, int(number)
