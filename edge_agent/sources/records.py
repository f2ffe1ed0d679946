"""Records as alarms."""

from collections.abc import Callable
from typing import Any

from edge_agent.sources import Context, Record
from wire import records


def read_record(get: Callable[[str], Any], fields: records.RecordFields, context: Context) -> Record | None:
    """Return the alarm of a record, None if it is none of ours, or raise :class:`RowRejected`."""
    record = records.read_record(get, fields)
    if record is None:
        return None
    alarm = context.alarm(record.name, record.at or context.now(), record.text, record.severity)
    return None if alarm is None else Record(alarm, record.kind)
