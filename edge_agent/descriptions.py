"""Descriptions of codes that the service has not acked yet."""

from collections.abc import Iterable, Sequence

from edge_agent.spool_models import NamedCode
from wire.codec import encode
from wire.events import CodeDescription
from wire.state import bounded

_MAX_BYTES, _MAX_ROWS = 18_000, 250  # of a message with descriptions: so that it stays below 64 kB

Row = tuple[int, int, int, int]  # seq, code, time, kind


class Descriptions:
    """Attaches each description to batches with a row of its code, until one of these rows is acked."""

    def __init__(self, unacked: Iterable[NamedCode]) -> None:
        self._unacked: dict[int, NamedCode] = {}
        self._sent: dict[int, int] = {}  # codes, and the first row that each was sent with
        self.add(unacked)

    def add(self, codes: Iterable[NamedCode]) -> None:
        """Add new descriptions."""
        self._unacked.update((code.code, code) for code in codes)

    def attach(self, rows: list[Row]) -> tuple[list[Row], list[CodeDescription]]:
        """Return the rows that fit into one message with the descriptions of their codes, and these."""
        found: dict[int, CodeDescription] = {}
        room = _MAX_BYTES
        for number, (seq, code, _, _) in enumerate(rows) if self._unacked else ():
            is_new = code in self._unacked and code not in found
            if is_new:
                described = _description(self._unacked[code])
                room -= len(encode(described)) + 1
            if (number >= _MAX_ROWS and (found or is_new)) or (found and room < 0):
                return rows[:number], list(found.values())
            if is_new:
                found[code] = described
                self._sent.setdefault(code, seq)
        return rows, list(found.values())

    def acked_with(self, spans: Sequence[tuple[int, int]]) -> list[int]:
        """Return the codes whose description was sent with a row in one of these ranges."""
        return [code for code, seq in self._sent.items() if any(first <= seq <= last for first, last in spans)]

    def remove(self, codes: Iterable[int]) -> None:
        """Remove descriptions that the service has."""
        for code in codes:
            self._sent.pop(code, None)
            self._unacked.pop(code, None)

    def send_again(self) -> None:
        """Send unacked descriptions with the next row of their code: the rows they were sent with are evicted."""
        self._sent.clear()


def _description(code: NamedCode) -> CodeDescription:
    return CodeDescription(
        code=code.code,
        name=bounded(code.name, 300),
        text=bounded(code.text, 500),
        severity=bounded(code.severity, 100),
    )
