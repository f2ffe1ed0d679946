"""Histories of machines: how a file is written, and what it holds before anything is stored."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from wire.columns import Preset
from wire.rest.texts import PrintableText
from wire.timestamps import UtcDatetime

_SEPARATORS: Final = {"tab": "\t", "\\t": "\t"}


Column = Annotated[PrintableText, StringConstraints(max_length=200)]


class HistoryColumns(BaseModel):
    """How the rows of a file are written, with the keys of the table ``[tail]`` of edge.toml.

    Without any, rows are ``timestamp,alarm,serial`` or JSON. A column is its name, or its number from 1 on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: Preset | None = Field(default=None, description="The columns of an export of WinCC or Ignition.")
    delimiter: str | None = Field(default=None, max_length=3, description="A sign between columns, or tab.")
    header: bool | None = Field(default=None, description="Whether the first line names the columns.")
    encoding: Column | None = Field(default=None, description="Such as cp1252; utf-8 unless given.")
    time: Column | None = Field(default=None, description="Column of the time.")
    date: Column | None = Field(default=None, description="Column of the date, if it has its own.")
    time_format: Column | None = Field(
        default=None, description="auto (ISO 8601 or Unix time), wincc_ms, or such as %d.%m.%Y %H:%M:%S."
    )
    code: Column | None = Field(default=None, description="Column of the alarm's code or name.")
    text: Column | None = Field(default=None, description="Column of the alarm's text.")
    state: Column | None = Field(
        default=None, description="Column of the state; without it every row raises an alarm."
    )
    raised: Column | None = Field(default=None, description="States that raise an alarm, separated by commas.")
    cleared: Column | None = Field(
        default=None, description="States that clear an alarm, separated by commas; such rows are not stored."
    )
    acknowledged: Column | None = Field(
        default=None,
        description="States that acknowledge an alarm, separated by commas; not stored either.",
    )
    serial_column: Column | None = Field(default=None, description="Column that says of which machine a row is.")

    def tail(self) -> dict[str, Any]:
        """Return the keys of ``[tail]`` that are given."""
        given = {name: value for name, value in self if value not in (None, "")}
        if "serial_column" in given:
            given["serial"] = given.pop("serial_column")
        if "delimiter" in given:
            given["delimiter"] = _SEPARATORS.get(given["delimiter"], given["delimiter"])
        for name in ("raised", "cleared", "acknowledged"):
            if name in given:
                given[name] = [value.strip() for value in given[name].split(",") if value.strip()]
        return given


class HistoryRowView(BaseModel):
    """A row as it is understood."""

    line: int = Field(description="Its number in the file.")
    text: str = Field(description="The row as it is written, cut after 200 characters.")
    at: UtcDatetime | None = Field(description="The alarm's time; null if the row raises none.")
    code: int | None
    name: str | None = Field(description="The alarm's name, if its code is derived from it or mapped.")
    serial: str | None
    meaning: str = Field(description="raised, cleared or other.")


class HistoryRejectedRow(BaseModel):
    """A row that cannot be read."""

    line: int
    text: str = Field(description="The row as it is written, cut after 200 characters.")
    reason: str


class HistoryCode(BaseModel):
    """An alarm code and how many rows raise it."""

    code: int
    name: str | None = Field(description="The alarm's name, if its code is derived from it or mapped.")
    text: str | None = Field(description="The alarm's text in the file.")
    rows: int


class HistorySerial(BaseModel):
    """A serial and how many rows it has."""

    serial: str
    rows: int


_EXAMPLE: Final[dict[str, JsonValue]] = {
    "problem": None,
    "field": None,
    "lines": 18351,
    "columns": ["TimeString", "MsgNumber", "StateAfter", "MsgText"],
    "suggested_preset": "wincc",
    "rows": 9100,
    "first_at": "2026-01-04T05:00:00.000Z",
    "last_at": "2026-11-15T21:40:12.000Z",
    "time_zone": "Europe/Rome",
    "first_rows": [
        {
            "line": 2,
            "text": "04.01.2026 06:00:00;139;1;Film torn",
            "at": "2026-01-04T05:00:00.000Z",
            "code": 139,
            "name": None,
            "serial": None,
            "meaning": "raised",
        }
    ],
    "codes": [{"code": 139, "name": None, "text": "Film torn", "rows": 812}],
    "code_count": 41,
    "rejected": 1,
    "rejected_rows": [
        {"line": 3, "text": "rubbish", "reason": "there is no column MsgNumber; the row has 1 columns"}
    ],
    "serials": [],
    "cleared": 9098,
    "other_states": 152,
    "too_old": 0,
    "from_the_future": 0,
    "notes": ["9,098 ignored: they clear an alarm.", "152 ignored: their state is neither raised nor cleared."],
}


class HistoryPreview(BaseModel):
    """What a file holds; nothing of it was stored."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    problem: str | None = Field(description="Why the file cannot be imported, and what to do; null if it can.")
    field: str | None = Field(description="The query parameter to correct, if it is known.")
    lines: int
    columns: list[str] = Field(description="The columns of the first line.")
    suggested_preset: Preset | None = Field(description="The preset whose columns the file has.")
    rows: int = Field(description="Rows that would be imported.")
    first_at: UtcDatetime | None = Field(description="The first alarm that would be imported.")
    last_at: UtcDatetime | None = Field(description="The last alarm that would be imported.")
    time_zone: str = Field(description="The zone in which timestamps that name none are read.")
    first_rows: list[HistoryRowView] = Field(description="The first rows as they are understood.")
    codes: list[HistoryCode] = Field(description="The most frequent codes, at most 200.")
    code_count: int = Field(description="How many different codes there are.")
    rejected: int = Field(description="Rows that cannot be read.")
    rejected_rows: list[HistoryRejectedRow] = Field(description="The first of them.")
    serials: list[HistorySerial] = Field(description="The most frequent serials, at most 200.")
    cleared: int = Field(description="Rows that clear an alarm; they are ignored.")
    other_states: int = Field(description="Rows whose state neither raises nor clears an alarm; they are ignored.")
    too_old: int = Field(description="Rows that are older than retention_days; they are ignored.")
    from_the_future: int = Field(description="Rows that lie in the future; they are ignored.")
    notes: list[str] = Field(description="What to know about rows that are ignored, in sentences.")
