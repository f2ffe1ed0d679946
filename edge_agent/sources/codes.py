"""Numbers of alarms: from the code map, from the name itself if it is a number, or derived from the name."""

import csv
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from edge_agent.errors import ConfigRejected
from edge_agent.spool_models import NamedCode
from wire.log_rows import RowRejected

_MAX_CODE = 2**31 - 1
_DERIVED_FROM, _DERIVED_COUNT = 1_000_000_000, 1_000_000_000
_MAX_NAMES, _MAX_NAME_LENGTH = 20_000, 300
_DIGITS = 10


class CodeBook:
    """Gives each name a number.

    A derived number is a hash of the name: machines with the same alarm names have the same numbers, also after a
    spool was lost. If two names have the same hash, the later one gets the next free number; the spool stores it.
    """

    def __init__(self, mapped: Mapping[str, int] | None = None) -> None:
        self._mapped = dict(mapped or {})
        self._derived: dict[str, int] = {}
        self._used: set[int] = set(self._mapped.values())
        self._new: list[NamedCode] = []
        self._described: set[str] = set()

    def restore(self, known: Iterable[NamedCode]) -> None:
        """Take over the numbers that the spool has stored."""
        for code in known:
            self._described.add(code.name)
            if code.name not in self._mapped and not _is_number(code.name):
                self._derived[code.name] = code.code
                self._used.add(code.code)

    def number(self, name: str, text: str = "", severity: str = "") -> int:
        """Return the number of a name; text and severity describe it the first time."""
        name = name.strip()
        found = self._mapped.get(name, self._derived.get(name))
        if found is None and _is_number(name):
            found = _numeric(name)
        if found is not None:
            if text and name not in self._described and len(self._described) < _MAX_NAMES:
                self._describe(NamedCode(name, found, text, severity))
            return found
        if not name or len(name) > _MAX_NAME_LENGTH:
            raise RowRejected(f"{name[:40]!r} cannot name an alarm: give 1 to {_MAX_NAME_LENGTH} characters")
        if len(self._derived) >= _MAX_NAMES:
            raise RowRejected(f"{name[:40]!r} is one name too many; give at most {_MAX_NAMES} different ones")
        return self._derive(name, text, severity)

    def take_new(self) -> list[NamedCode]:
        """Return the numbers and descriptions since the last call; the caller stores them with their alarms."""
        new, self._new = self._new, []
        return new

    def _derive(self, name: str, text: str, severity: str) -> int:
        digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        code = _DERIVED_FROM + digest % _DERIVED_COUNT
        while code in self._used:
            code = _DERIVED_FROM + (code + 1 - _DERIVED_FROM) % _DERIVED_COUNT
        self._derived[name] = code
        self._used.add(code)
        self._describe(NamedCode(name, code, text, severity))
        return code

    def _describe(self, code: NamedCode) -> None:
        self._described.add(code.name)
        self._new.append(code)


def read_code_map(path: Path) -> dict[str, int]:
    """Read a CSV file with the columns ``name`` and ``code``; further columns are ignored."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigRejected(f"Cannot read the code map {path}: {error}. Correct source.codes.") from None
    first = text.partition("\n")[0]
    rows = csv.DictReader(text.splitlines(), delimiter=";" if ";" in first else ",")
    if not {"name", "code"} <= set(rows.fieldnames or []):
        raise ConfigRejected(f"The code map {path} needs a first line with the columns name and code.")
    mapped: dict[str, int] = {}
    for row in rows:
        name, code = (row["name"] or "").strip(), (row["code"] or "").strip()
        try:
            mapped[name] = _numeric(code)
        except RowRejected as error:
            raise ConfigRejected(f"The code map {path} is wrong in line {rows.line_num}: {error}.") from None
    return mapped


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _numeric(text: str) -> int:
    if not _is_number(text) or len(text) > _DIGITS or int(text) > _MAX_CODE:
        raise RowRejected(f"{text[:40]!r} is not an alarm code (a whole number from 0 to {_MAX_CODE})")
    return int(text)
