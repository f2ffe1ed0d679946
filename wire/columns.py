"""Lines of a log with any columns, as the agent follows them and as histories are read."""

import csv
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from wire.log_rows import RowRejected
from wire.records import RecordFields

Preset = Literal["wincc", "ignition"]
PRESETS: Final[dict[Preset, dict[str, Any]]] = {
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
    preset: Preset | None = None
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    header: bool = True
    date: str | None = None
    serial: str | None = None
    encoding: str = "utf-8"

    @field_validator("delimiter")
    @classmethod
    def _separates(cls, delimiter: str) -> str:
        if delimiter == '"' or not (delimiter == "\t" or delimiter.isprintable()):
            raise ValueError("give a sign such as ; or , or a tab")
        return delimiter

    @field_validator("encoding")
    @classmethod
    def _has_lines(cls, encoding: str) -> str:
        try:
            has_lines = "\n".encode(encoding) == b"\n"
            b"\xff".decode(encoding, errors="replace")
        except (LookupError, ValueError):
            raise ValueError(f"there is no encoding {encoding}; try utf-8 or cp1252") from None
        if not has_lines:
            raise ValueError(f"lines in {encoding} cannot be followed; let the file be written as utf-8")
        return encoding

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.code or self.time is None:
            raise ValueError("give the columns code and time, or a preset")
        return self

    @property
    def used(self) -> list[str]:
        """The columns that are read, each once."""
        named = (self.date, self.time, self.code, self.text, self.severity, self.state, self.serial)
        return list(dict.fromkeys(name for name in named if name is not None))


def with_preset(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options on top of their preset's."""
    preset = next((columns for name, columns in PRESETS.items() if name == options.get("preset")), {})
    return preset | options


@dataclass(frozen=True)
class ColumnRow:
    """A line that was split."""

    values: list[str]
    columns: dict[str, int]
    options: ColumnOptions

    @property
    def serial(self) -> str | None:
        """The machine that the row names; None if there is no column for it."""
        return None if self.options.serial is None else self.get(self.options.serial)

    def get(self, name: str) -> str:
        """Return the value of a column, or raise :class:`RowRejected`; a time has its date before it."""
        number = column_number(name)
        if number is None:
            number = self.columns.get(name, -1)
        if not 0 <= number < len(self.values):
            raise RowRejected(f"there is no column {name}; the row has {len(self.values)} columns")
        if name == self.options.time and self.options.date is not None:
            return f"{self.get(self.options.date)} {self.values[number]}"
        return self.values[number]


class LineSplitter:
    """Splits the lines of files into columns."""

    def __init__(self, options: ColumnOptions) -> None:
        self._options = options
        self._columns: dict[str, int] = {}
        self.header: list[str] = []

    @property
    def missing(self) -> list[str]:
        """The columns that are read but that the header does not have."""
        if not self._options.header:
            return []
        return [name for name in self._options.used if column_number(name) is None and name not in self._columns]

    def start_file(self, first_line: str) -> None:
        """Take the names of the columns from the first line of a file; one that is not CSV has none."""
        if self._options.header:
            try:
                self.header = split_line(first_line, self._options.delimiter)
            except RowRejected:
                self.header = []
            self._columns = {name: number for number, name in enumerate(self.header)}

    def split(self, line: str) -> ColumnRow | None:
        """Return the line in its columns, None of a header or an empty line, or raise :class:`RowRejected`."""
        values = split_line(line, self._options.delimiter)
        if values in ([], [""], self.header):
            return None
        return ColumnRow(values, self._columns, self._options)


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the values of a line, or raise :class:`RowRejected`."""
    try:
        row = next(csv.reader([line.strip("\r\n").lstrip("\ufeff")], delimiter=delimiter), [])
    except csv.Error as error:
        raise RowRejected(f"the line is not CSV: {error}") from None
    return [value.strip() for value in row]


def column_number(name: str) -> int | None:
    """Return the place of a column that is given as a number from 1 on."""
    return int(name) - 1 if name.isascii() and name.isdigit() and len(name) < 5 else None  # noqa: PLR2004
