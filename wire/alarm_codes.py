"""Numbers of alarms: from a code map, from the name itself if it is a number, or derived from the name."""

import csv
import hashlib
from collections.abc import Mapping

from wire.log_rows import RowRejected, is_number, whole_code

_DERIVED_FROM, _DERIVED_COUNT = 1_000_000_000, 1_000_000_000
MAX_NAMES = 20_000
_MAX_NAME_LENGTH = 300


class CodeNumbers:
    """Gives each name a number.

    A derived number is a hash of the name: machines with the same alarm names have the same numbers, live and in
    their histories. If two names have the same hash, the later one gets the next free number.
    """

    def __init__(self, mapped: Mapping[str, int] | None = None) -> None:
        self._mapped = dict(mapped or {})
        self._derived: dict[str, int] = {}
        self._used: set[int] = set(self._mapped.values())

    def number(self, name: str) -> int:
        """Return the number of a name, or raise :class:`RowRejected`."""
        name = name.strip()
        found = self._mapped.get(name, self._derived.get(name))
        if found is not None:
            return found
        if is_number(name):
            return whole_code(name)
        if not name or len(name) > _MAX_NAME_LENGTH:
            raise RowRejected(f"{name[:40]!r} cannot name an alarm: give 1 to {_MAX_NAME_LENGTH} characters")
        if len(self._derived) >= MAX_NAMES:
            raise RowRejected(f"{name[:40]!r} is one name too many; give at most {MAX_NAMES} different ones")
        return self._derive(name)

    def _keep(self, name: str, code: int) -> None:
        self._derived[name] = code
        self._used.add(code)

    def _derive(self, name: str) -> int:
        digest = int.from_bytes(hashlib.sha256(name.encode(errors="replace")).digest()[:8], "big")
        code = _DERIVED_FROM + digest % _DERIVED_COUNT
        while code in self._used:
            code = _DERIVED_FROM + (code + 1 - _DERIVED_FROM) % _DERIVED_COUNT
        self._keep(name, code)
        return code


def parse_code_map(text: str) -> dict[str, int]:
    """Read CSV with the columns ``name`` and ``code``, or raise :class:`RowRejected`; others are ignored."""
    text = text.lstrip("\ufeff")
    first = text.partition("\n")[0]
    rows = csv.DictReader(text.splitlines(), delimiter=";" if ";" in first else ",")
    if not {"name", "code"} <= set(rows.fieldnames or []):
        raise RowRejected("its first line must name the columns name and code")
    mapped: dict[str, int] = {}
    try:
        for row in rows:
            name, code = (row["name"] or "").strip(), (row["code"] or "").strip()
            mapped[name] = whole_code(code)
    except (RowRejected, csv.Error) as error:
        raise RowRejected(f"line {rows.line_num}: {error}") from None
    return mapped
