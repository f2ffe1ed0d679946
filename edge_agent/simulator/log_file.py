"""A simulated fleet's past as one log file, in the raw layout that a real fleet's export has."""

import csv
import gzip
import heapq
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from edge_agent.simulator.profile import machine_profile
from edge_agent.simulator.stream import alarms
from wire.alarm import Alarm


def write_log(path: Path, *, machines: int, days: float, end: datetime, seed: int, first: int = 0) -> int:
    """Write the last ``days`` before ``end`` of ``machines`` machines, and return the number of alarms.

    Machines ``first``, ``first + 1``, ... are merged in order of time; their index is the serial. Times are
    UTC without saying so, as in the published logs. A ``path`` that ends in .gz is compressed.
    """
    start = end - timedelta(days=days)
    fleet = [_logged(seed, index, start, end) for index in range(first, first + machines)]
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["timestamp", "alarm", "serial"])
        count = 0
        for alarm, serial in heapq.merge(*fleet):
            rows.writerow([alarm.at.strftime("%Y-%m-%d %H:%M:%S.%f"), alarm.code, serial])
            count += 1
    return count


def _logged(seed: int, index: int, start: datetime, end: datetime) -> Iterator[tuple[Alarm, int]]:
    return ((alarm, index) for alarm in alarms(machine_profile(seed, index), start, end))
