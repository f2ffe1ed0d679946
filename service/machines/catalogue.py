"""The fleet's one alarm catalogue: what each code means, how bad it is, whether it is forecast, how to respond."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from service.errors import InputRejected
from service.http.csv_text import escape_formula
from wire.codec import MAX_BYTES
from wire.enums import EntryOrigin
from wire.events import CodeDescription
from wire.rest.catalogue import NO_RESPONSE, AlarmResponse, ResponseUpdate

SEVERITIES = ("low", "medium", "high")
_REQUIRED = ("code", "text", "severity", "target")
COLUMNS = (*_REQUIRED, *AlarmResponse.model_fields, "origin")
_TRUTH = {"yes": True, "no": False}
_MAX_CODE, _MAX_TEXT, _DIGITS = 2**31 - 1, 200, 10
_FORECAST_BYTES, _ALARM_BYTES = 600, 160  # of a forecast's JSON, without its alarms and without their texts
_MIN_SCALE, _MAX_SCALE = 10, 1000  # numbers below 10 are priorities, of which some systems count 1 as the highest
_WORDS = {
    "low": ("low", "info", "information", "diagnostic", "message", "notice"),
    "high": ("high", "critical", "urgent", "error", "fault", "emergency"),
}
_NAMED = 20  # codes that a change names; of a whole catalogue their number is enough


@dataclass(frozen=True)
class CatalogueEntry:
    """One alarm code in words."""

    code: int
    text: str
    severity: str
    target: bool
    response: AlarmResponse = NO_RESPONSE
    origin: EntryOrigin = EntryOrigin.ADMIN

    def row(self) -> tuple[int | str | None, ...]:
        """Return the values of ``COLUMNS`` in a CSV."""
        target = "yes" if self.target else "no"
        return (
            self.code,
            self.text,
            self.severity,
            target,
            *self.response.model_dump().values(),
            self.origin.value,
        )


@dataclass(frozen=True)
class CatalogueChange:
    """What became of the catalogue when entries were added: codes that are new, and codes that changed."""

    new: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed)

    def __str__(self) -> str:
        changed = f", {len(self.changed)} changed{_named(self.changed)}" if self.changed else ""
        return f"{len(self.new)} new codes{_named(self.new)}{changed}"


def _named(codes: tuple[int, ...]) -> str:
    if not codes:
        return ""
    more = f" and {len(codes) - _NAMED} more" if len(codes) > _NAMED else ""
    return f" ({', '.join(map(str, codes[:_NAMED]))}{more})"


def size_warning(entries: Iterable[CatalogueEntry]) -> str | None:
    """Say what follows if a forecast of all these targets is too large for one MQTT message; None if it fits."""
    targets = [entry for entry in entries if entry.target]
    sizes = [_ALARM_BYTES + len(json.dumps(entry.text, ensure_ascii=False).encode()) for entry in targets]
    whole = _FORECAST_BYTES + sum(sizes)
    if whole <= MAX_BYTES:
        return None
    return (
        f"A forecast of {len(targets)} target codes has about {whole:,} bytes, and an MQTT message at most "
        f"{MAX_BYTES:,}. Over MQTT the less likely alarms are left out and counted in the field omitted; REST has "
        "them all. To publish every alarm, mark fewer codes as targets."
    )


def described(code: CodeDescription) -> CatalogueEntry:
    """Return the entry of a code as a machine describes it; it is not forecast until an admin completes it."""
    name = "" if code.name == str(code.code) else code.name.strip()
    text = f"{code.text.strip()} ({name})" if code.text.strip() and name else code.text.strip() or name
    printable = "".join(character if character.isprintable() else " " for character in text)[:_MAX_TEXT].strip()
    words = printable or unknown_code(code.code).text
    severity = _severity(code.severity)
    return CatalogueEntry(code.code, words, severity, target=False, origin=EntryOrigin.MACHINE)


def _severity(stated: str) -> str:
    """Return our severity of a machine's: a word, or a number from 1 to 1000 as in OPC UA."""
    word = stated.strip().lower()
    if word.isascii() and word.isdigit() and _MIN_SCALE <= int(word) <= _MAX_SCALE:
        return SEVERITIES[min(int(word) * 3 // (_MAX_SCALE + 1), 2)]
    return next((severity for severity, words in _WORDS.items() if word in words), "medium")


def unknown_code(code: int) -> CatalogueEntry:
    """Return the entry shown for a code the catalogue does not hold."""
    return CatalogueEntry(code, f"Alarm {code}", "medium", target=False)


class Catalogue(dict[int, CatalogueEntry]):
    """Entries by code; a code that it does not hold has the entry of an unknown code."""

    def __missing__(self, code: int) -> CatalogueEntry:
        return unknown_code(code)

    def of_admins(self) -> dict[int, CatalogueEntry]:
        """Return the entries that an admin has written; others count as unknown when a model is trained."""
        return {code: entry for code, entry in self.items() if entry.origin is EntryOrigin.ADMIN}


def parse_catalogue(text: str) -> list[CatalogueEntry]:
    """Read a CSV with the columns code, text, severity and target, or say which line is wrong and why.

    The columns cause, consequence, action and link are optional. Their value is None where the column is missing
    and "" where the cell is empty. The column origin of an export is optional, too.
    """
    text = text.removeprefix("\ufeff")
    try:
        head, *rows = csv.reader(io.StringIO(text, newline=None)) if text.strip() else [[]]
    except csv.Error as error:
        raise InputRejected(f"The catalogue cannot be read as CSV: {error}.") from None
    columns = [name.strip().lower() for name in head]
    _check_columns(columns)
    entries: dict[int, CatalogueEntry] = {}
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(columns):
            raise InputRejected(
                f"Line {number} of the catalogue has {len(row)} fields; put texts with a comma in quotes."
            )
        entry = _entry(number, {name: _unescaped(field.strip()) for name, field in zip(columns, row, strict=True)})
        if entry.code in entries:
            raise InputRejected(f"Line {number} of the catalogue names code {entry.code} a second time.")
        entries[entry.code] = entry
    if not entries:
        raise InputRejected("The catalogue holds no alarm code.")
    return list(entries.values())


def _check_columns(columns: list[str]) -> None:
    missing = [name for name in _REQUIRED if name not in columns]
    if missing:
        hint = " Separate fields by commas." if len(columns) == 1 and ";" in columns[0] else ""
        raise InputRejected(
            f"A catalogue must start with the line {','.join(_REQUIRED)}; missing: {', '.join(missing)}.{hint}"
        )
    if len(set(columns)) < len(columns) or not set(columns) <= set(COLUMNS):
        raise InputRejected(f"A catalogue has each of these columns at most once: {', '.join(COLUMNS)}.")


def _unescaped(field: str) -> str:
    """Undo what an export does to a text that a spreadsheet would read as a formula."""
    return field[1:] if field.startswith("'") and escape_formula(field[1:]) == field else field


def _entry(number: int, row: dict[str, str]) -> CatalogueEntry:
    code, text, severity, target = (row.pop(name) for name in _REQUIRED)
    if not (code.isascii() and code.isdigit() and len(code) <= _DIGITS) or int(code) > _MAX_CODE:
        raise InputRejected(
            f"Line {number} of the catalogue: {code[:20]!r} is not an alarm code (a whole number from 0 to "
            f"{_MAX_CODE})."
        )
    if not text or len(text) > _MAX_TEXT or not text.isprintable():
        raise InputRejected(f"Line {number} of the catalogue: the text must have 1 to {_MAX_TEXT} characters.")
    if severity not in SEVERITIES:
        raise InputRejected(f"Line {number} of the catalogue: severity must be one of {', '.join(SEVERITIES)}.")
    if target not in _TRUTH:
        raise InputRejected(f"Line {number} of the catalogue: target must be yes or no.")
    origin = row.pop("origin", "") or EntryOrigin.ADMIN.value
    if origin not in set(EntryOrigin):
        raise InputRejected(f"Line {number} of the catalogue: origin must be {' or '.join(EntryOrigin)}.")
    try:
        response = ResponseUpdate(**row)
    except ValidationError as error:
        name = error.errors()[0]["loc"][0]
        rule = "an http or https address of" if name == "link" else "one line of"
        raise InputRejected(
            f"Line {number} of the catalogue: {name} must be {rule} at most 500 characters."
        ) from None
    return CatalogueEntry(int(code), text, severity, _TRUTH[target], response, EntryOrigin(origin))
