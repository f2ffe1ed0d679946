"""The rows of a history file as they are understood, with the usual columns or with any others."""

from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple, NoReturn

from service.errors import InputRejected
from service.learning.history_file import ImportFile, blocks, first_bytes
from wire.alarm import Alarm
from wire.alarm_codes import CodeNumbers
from wire.columns import PRESETS, ColumnRow, LineSplitter, Preset, split_line
from wire.events import CodeDescription, TransitionKind
from wire.log_rows import Fields, RowReader, RowRejected, fields, in_utc
from wire.records import read_record

_SNIFF_ROWS: Final = 1_000  # rows among which there must be an alarm
_DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_HEAD_BYTES: Final = 4_096  # enough to tell what kind of file it is
_COLUMN_FIELDS: Final = ("time", "date", "code", "text", "severity", "state", "serial")
_SHOWN_COLUMNS, _SHOWN_NAME = 30, 60


class HistoryRow(NamedTuple):
    """A row; ``alarm`` is None if it raises none, and ``name`` is empty if the code is written as a number."""

    alarm: Alarm | None
    name: str = ""
    text: str = ""
    severity: str = ""
    cleared: bool = False

    def description(self) -> CodeDescription | None:
        """Return how the file describes the alarm's code; None if it does not."""
        if self.alarm is None or not (self.name or self.text):
            return None
        name, text, severity = (_one_line(value) for value in (self.name, self.text, self.severity))
        return CodeDescription(
            code=self.alarm.code, name=name or str(self.alarm.code), text=text[:500], severity=severity[:100]
        )


class HistoryReader:
    """Reads the rows of one file. A row names an alarm in the same way as the agent that follows such a file."""

    def __init__(self, log: ImportFile) -> None:
        self._log = log
        self._plain = RowReader(None, log.zone)
        self._codes = CodeNumbers(log.code_map)
        self._lines = None if log.columns is None else LineSplitter(log.columns)
        if self._lines is not None:
            self._lines.start_file(first_line(log))

    @property
    def has_usual_columns(self) -> bool:
        """Whether rows are ``timestamp,alarm,serial`` or JSON."""
        return self._lines is None

    def split(self, line: str) -> Fields | ColumnRow | None:
        """Return a line in its parts, None of a header or an empty one, or raise :class:`RowRejected`."""
        return fields(line) if self._lines is None else self._lines.split(line)

    def take(self, row: Fields | ColumnRow) -> HistoryRow:
        """Return what a row says, or raise :class:`RowRejected`."""
        if isinstance(row, Fields):
            return HistoryRow(self._plain.take(row))
        record = read_record(row.get, row.options)
        if record is None or record.kind is not None:
            return HistoryRow(None, cleared=record is not None and record.kind is TransitionKind.CLEARED)
        if "\ufffd" in record.name:
            raise RowRejected(f"the line is not {row.options.encoding}; give the encoding, for example cp1252")
        if record.at is None:
            raise RowRejected("the row has no time")
        code = self._codes.number(record.name)
        name = "" if record.name == str(code) else record.name
        return HistoryRow(Alarm(in_utc(record.at, self._log.zone), code), name, record.text, record.severity)

    def require_columns(self) -> None:
        """Raise :class:`InputRejected` if the file does not have the columns that are to be read."""
        line, columns = first_line(self._log), self._log.columns
        if self._lines is None or columns is None or not line or not (missing := self._lines.missing):
            return
        found, guess = self._lines.header, likely_delimiter(line)
        if len(found) < 2 and guess not in (None, columns.delimiter):  # noqa: PLR2004
            self._refuse(
                f"{self._log.title} has no {_named(columns.delimiter)} between its columns, but {_named(guess)}. "
                "Give that delimiter. Nothing was stored.",
                "delimiter",
            )
        field = next(name for name in _COLUMN_FIELDS if getattr(columns, name) == missing[0])
        self._refuse(
            f"{self._log.title} has no column {', '.join(missing)}. {_columns_are(found)} Choose among them, or "
            f"choose another preset. Nothing was stored.{_hint(self._log)}",
            "serial_column" if field == "serial" else field,
        )

    def require_alarms(self) -> None:
        """Raise :class:`InputRejected` if the file is none of alarms, before a row is stored or quarantined.

        Rows of other machines are alarms too; only the header and what cannot be read are none.
        """
        log, wrong, number, is_understood = self._log, "", 0, False
        self.require_columns()
        for number, line in islice(numbered(log), _SNIFF_ROWS):
            try:
                row = self.split(line)
                if row is not None and self.take(row).alarm is not None:
                    return
                is_understood = is_understood or row is not None
            except RowRejected as error:
                wrong = wrong or f" Line {number}: {error}."
        if is_understood and not wrong:
            return  # all of them clear an alarm
        if not wrong:
            what = "has no row" if number else "is empty"
            raise InputRejected(f"{log.title} {what}; choose a file with a row for every alarm.")
        self._refuse(
            f"{log.title} is no log of alarms: none of its first {number:,} lines is one. Nothing was stored."
            f"{wrong}{_hint(log)}"
        )

    def _refuse(self, sentence: str, field: str | None = None) -> NoReturn:
        if kind := _other_kind(first_bytes(self._log)[:_HEAD_BYTES]):
            raise InputRejected(f"{self._log.title} is no log of alarms: it is {kind}. Nothing was stored.")
        raise InputRejected(sentence, pointer=None if field is None else f"query/{field}")


def with_serial_column(log: ImportFile) -> ImportFile:
    """Let rows with the usual columns name their machine, also if they have another delimiter or named alarms."""
    columns = log.columns
    if columns is None or columns.serial is not None or not columns.header:
        return log
    names = columns_of(log)
    if (columns.time, columns.code) != ("timestamp", "alarm") or "serial" not in names:
        return log
    return replace(log, columns=columns.model_copy(update={"serial": "serial"}))


def numbered(log: ImportFile) -> "enumerate[str]":
    """Return the lines of a file with their numbers."""
    return enumerate((line for _, lines in blocks(log) for line in lines), start=1)


def first_line(log: ImportFile) -> str:
    """Return the first line of a file."""
    return next((lines[0] for _, lines in blocks(log)), "")


def columns_of(log: ImportFile) -> list[str]:
    """Return the columns of the first line, split at the given or the likely delimiter."""
    line = first_line(log)
    delimiter = log.columns.delimiter if log.columns is not None else likely_delimiter(line)
    try:
        found = split_line(line, delimiter or ",")
    except RowRejected:
        return []
    return [name[:_SHOWN_NAME] for name in found if name.isprintable()][:_SHOWN_COLUMNS]


def likely_delimiter(line: str) -> str | None:
    """Return the most frequent sign of a line that may separate its columns."""
    most = max(_DELIMITERS, key=line.count)
    return most if most in line else None


def likely_preset(log: ImportFile) -> Preset | None:
    """Return the preset whose columns a file has."""
    line = first_line(log)
    try:
        found = set(split_line(line, likely_delimiter(line) or ","))
    except RowRejected:
        return None
    return next(
        (name for name, one in PRESETS.items() if {one["time"], one["code"], one["state"]} <= found),
        None,
    )


def _hint(log: ImportFile) -> str:
    """Say how a file that cannot be read may be read."""
    preset, delimiter = likely_preset(log), likely_delimiter(first_line(log))
    if preset is not None and (log.columns is None or log.columns.preset != preset):
        other = "" if delimiter == PRESETS[preset].get("delimiter", ",") else f" and the delimiter {delimiter}"
        return f" It has the columns of the preset {preset}: choose that{other}."
    if log.columns is None and delimiter is not None:
        return " If its columns have other names, name those of time and code."
    return ""


def _columns_are(names: list[str]) -> str:
    shown = [name[:_SHOWN_NAME] for name in names if name.isprintable() and name][:_SHOWN_COLUMNS]
    return f"Its columns: {', '.join(shown)}." if shown else "Its first line names no columns."


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _named(delimiter: str | None) -> str:
    return _DELIMITERS.get(delimiter or "", f"{delimiter!r}")


def _other_kind(beginning: bytes) -> str | None:
    """Say what a file is that is no text, and what to do about it; None if it may be text."""
    if beginning.startswith(b"PK\x03\x04"):
        return "a ZIP archive or an Excel workbook; save its rows as CSV"
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text in UTF-16; save it as UTF-8"
    return "no text file; save its rows as CSV" if b"\0" in beginning else None
