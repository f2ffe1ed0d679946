"""Server-sent events out of the bytes they come in, after the WHATWG's rules."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class ServerEvent:
    """One event: its name, its data, and the id of the last event that had one."""

    name: str
    data: str
    id: str = ""


class EventReader:
    """Takes bytes as they come and yields each event as soon as it is whole; an unfinished one is none."""

    def __init__(self) -> None:
        self._rest = b""
        self._ends_in_return = False  # a line feed that follows belongs to the same line end
        self._name, self._data, self._id = "", list[str](), ""

    def __call__(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yield the events that these bytes complete."""
        if not chunk:
            return  # nothing came: what the last bytes ended in still holds
        if self._ends_in_return:
            chunk = chunk.removeprefix(b"\n")
        self._ends_in_return = chunk.endswith(b"\r")
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        for line in lines:
            if line:
                self._take(line.decode(errors="replace"))
            elif self._data:
                yield ServerEvent(self._name or "message", "\n".join(self._data), self._id)
            if not line:
                self._name, self._data = "", []

    def _take(self, line: str) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value:
            self._id = value
