"""Lines of a log with any columns."""

import codecs
import csv
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from edge_agent.sources import Context, Record
from edge_agent.sources.records import RecordFields, read_record
from edge_agent.sources.signals import parse_options
from wire.log_rows import RowRejected

_PRESETS: dict[str, dict[str, Any]] = {
    # StateAfter: 1 incoming, 0 and 2 outgoing, 3 acknowledged while active, 6 acknowledged afterwards.
    "wincc": {
        "delimiter": ";",
        "time": "TimeString",
        "time_format": "%d.%m.%Y %H:%M:%S",
        "code": "MsgNumber",
        "text": "MsgText",
        "severity": "MsgClass",
        "state": "StateAfter",
        "raised": ("1",),
        "cleared": ("0", "2"),
        "acknowledged": ("3", "6"),
    },
    "ignition": {
        "time": "EventTime",
        "code": "DisplayPath",
        "severity": "Priority",
        "state": "EventState",
        "raised": ("Active",),
        "cleared": ("Clear", "Cleared"),
        "acknowledged": ("Ack", "Acknowledged"),
    },
}


class ColumnOptions(RecordFields):
    """The table ``[tail]``: fields are names of columns, or their numbers from 1 on."""

    code: str = ""
    preset: Literal["wincc", "ignition"] | None = None
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    header: bool = True
    date: str | None = None
    serial: str | None = None
    encoding: str = "utf-8"

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.code or self.time is None:
            raise ValueError("give the columns code and time, or a preset")
        if codecs.encode("\n", self.encoding) != b"\n":
            raise ValueError(f"lines in {self.encoding} cannot be followed; let the file be written as utf-8")
        return self

    @classmethod
    def of(cls, options: dict[str, Any]) -> "ColumnOptions":
        """Return the options on top of their preset's."""
        preset = _PRESETS.get(str(options.get("preset")), {})
        return parse_options(cls, preset | options, "tail")


class ColumnReader:
    """Reads lines by the names of their columns."""

    def __init__(self, options: ColumnOptions, context: Context, serial: str | None = None) -> None:
        self._options, self._context, self._serial = options, context, serial
        self._columns: dict[str, int] = {}
        self._header: list[str] = []
        self.encoding = options.encoding

    def start_file(self, first_line: str) -> None:
        """Take the names of the columns from the first line of a file."""
        if self._options.header:
            self._header = self._split(first_line)
            self._columns = {name: number for number, name in enumerate(self._header)}

    def read(self, line: str) -> Record | None:
        """Return the line's alarm, None of a line without one of ours, or raise :class:`RowRejected`."""
        values = self._split(line)
        if values in ([], [""], self._header):
            return None

        def get(name: str) -> str:
            number = int(name) - 1 if name.isdigit() else self._columns.get(name, -1)
            if not 0 <= number < len(values):
                raise RowRejected(f"there is no column {name}; the row has {len(values)} columns")
            if name == self._options.time and self._options.date is not None:
                return f"{get(self._options.date)} {values[number]}"
            return values[number]

        if self._serial is not None and self._options.serial and get(self._options.serial) != self._serial:
            return None
        return read_record(get, self._options, self._context)

    def _split(self, line: str) -> list[str]:
        row = next(csv.reader([line.strip("\r\n").lstrip("\ufeff")], delimiter=self._options.delimiter), [])
        return [value.strip() for value in row]
