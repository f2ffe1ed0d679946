"""Lines of a log with any columns."""

from typing import Any

from edge_agent.sources import Context, Record
from edge_agent.sources.records import read_record
from edge_agent.sources.signals import parse_options
from wire.columns import ColumnOptions, LineSplitter, with_preset


def parse_columns(options: dict[str, Any]) -> ColumnOptions:
    """Read the table ``[tail]``, or raise :class:`ConfigRejected`."""
    return parse_options(ColumnOptions, with_preset(options), "tail")


class ColumnReader:
    """Reads lines by the names of their columns."""

    def __init__(self, options: ColumnOptions, context: Context, serial: str | None = None) -> None:
        self._options, self._context, self._serial = options, context, serial
        self._lines = LineSplitter(options)
        self.encoding, self.start_file = options.encoding, self._lines.start_file

    def read(self, line: str) -> Record | None:
        """Return the line's alarm, None of a line without one of ours, or raise :class:`RowRejected`."""
        row = self._lines.split(line)
        if row is None or (self._serial is not None and row.serial not in (None, self._serial)):
            return None
        return read_record(row.get, self._options, self._context)
