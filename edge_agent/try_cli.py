"""``alarmcast-edge try``: show the next alarms as they would be sent; nothing is sent or stored."""

from collections.abc import Iterator
from threading import Event, Timer

from edge_agent.settings import Settings
from edge_agent.sources import SourceBatch
from edge_agent.sources.build import build_source, code_book
from edge_agent.sources.codes import CodeBook
from wire.clock import PlantClock
from wire.timestamps import isoformat


def print_alarms(settings: Settings, *, alarms: int, seconds: float) -> int:
    """Print alarms until there are enough or the time is over; return 0 if there was one."""
    codes, stop = code_book(settings), Event()
    clock = PlantClock(settings.clock_wall_origin, settings.clock_plant_origin, settings.clock_speed)
    source = build_source(settings, clock, codes, trial=True)
    timer = Timer(seconds, stop.set)
    timer.start()
    shown = 0
    try:
        for batch in source.batches(None, stop):
            for line in _lines(batch, codes):
                print(line, flush=True)  # noqa: T201
            shown += len(batch.alarms)
            if shown >= alarms:
                stop.set()
    finally:
        timer.cancel()
    print(f"{shown} alarms; nothing was sent or stored")  # noqa: T201
    return 0 if shown else 1


def _lines(batch: SourceBatch, codes: CodeBook) -> Iterator[str]:
    for message in (batch.warning, batch.lost.message if batch.lost else None):
        if message:
            yield f"warning  {message}"
    for skipped in batch.skipped:
        yield f"skipped  {skipped}"
    for new in codes.take_new():
        described = " ".join(part for part in (new.text, new.severity and f"severity {new.severity}") if part)
        yield f"new      {new.code} is {new.name}" + (f": {described}" if described else "")
    changes = [("raised", alarm) for alarm in batch.alarms]
    for number, (alarm, kind, after) in enumerate(batch.transitions):
        changes.insert(after + number, (kind.value, alarm))
    for word, alarm in changes:
        yield f"{word:<7}  {isoformat(alarm.at)}  {alarm.code}"
