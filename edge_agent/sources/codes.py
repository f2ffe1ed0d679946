"""Numbers of alarms, described for the service and stored in the spool."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from edge_agent.errors import ConfigRejected
from edge_agent.spool_models import NamedCode
from wire.alarm_codes import MAX_NAMES, CodeNumbers, parse_code_map
from wire.log_rows import RowRejected, is_number


class CodeBook(CodeNumbers):
    """Gives each name a number, and describes it the first time; the spool stores both."""

    def __init__(self, mapped: Mapping[str, int] | None = None) -> None:
        super().__init__(mapped)
        self._new: list[NamedCode] = []
        self._described: set[str] = set()

    def restore(self, known: Iterable[NamedCode]) -> None:
        """Take over the numbers that the spool has stored."""
        for code in known:
            self._described.add(code.name)
            if code.name not in self._mapped and not is_number(code.name):
                self._keep(code.name, code.code)

    def number(self, name: str, text: str = "", severity: str = "") -> int:
        """Return the number of a name; text and severity describe it the first time."""
        name, known = name.strip(), len(self._derived)
        code = super().number(name)
        is_new = text and name not in self._described and len(self._described) < MAX_NAMES
        if is_new or len(self._derived) > known:
            self._described.add(name)
            self._new.append(NamedCode(name, code, text, severity))
        return code

    def take_new(self) -> list[NamedCode]:
        """Return the numbers and descriptions since the last call; the caller stores them with their alarms."""
        new, self._new = self._new, []
        return new


def read_code_map(path: Path) -> dict[str, int]:
    """Read a CSV file with the columns ``name`` and ``code``; further columns are ignored."""
    try:
        return parse_code_map(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigRejected(f"Cannot read the code map {path}: {error}. Correct source.codes.") from None
    except RowRejected as error:
        raise ConfigRejected(f"The code map {path} is wrong: {error}.") from None
