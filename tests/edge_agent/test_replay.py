"""Replaying a log: in its rhythm on the plant clock, or as it is."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

from edge_agent.sources.replay import Replay
from wire.clock import PlantClock
from wire.log_rows import RowReader

NOW = datetime(2026, 11, 16, tzinfo=UTC)
LOG = """timestamp,alarm,serial
2019-02-21 10:00:00,1,3
2019-02-21 10:00:10,2,3
2019-02-21 10:00:10,9,4
broken
2019-02-21 11:00:00,3,3
"""


def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


def clock_standing_at(moment: datetime) -> PlantClock:
    return PlantClock(NOW, NOW, 1.0, wall=moment.timestamp)


def replay(path: Path, clock: PlantClock, *, at_once: bool = False) -> Replay:
    return Replay(path, rows=RowReader(serial="3"), clock=clock, at_once=at_once)


def test_sent_as_it_is_the_log_keeps_its_own_times(tmp_path: Path) -> None:
    (batch,) = replay(log(tmp_path), clock_standing_at(NOW), at_once=True).batches(None, Event())
    assert [alarm.code for alarm in batch.alarms] == [1, 2, 3]
    assert batch.alarms[0].at == datetime(2019, 2, 21, 10, tzinfo=UTC)
    assert len(batch.skipped) == 1


def test_played_on_the_plant_clock_the_first_alarm_is_now_and_the_rest_keeps_its_distance(tmp_path: Path) -> None:
    # The clock is read often; it moves two hours on after the shift was taken, so everything is due at once.
    moments = iter([NOW, *[NOW + timedelta(hours=2)] * 50])
    clock = PlantClock(NOW, NOW, 1.0, wall=lambda: next(moments).timestamp())
    batches = list(replay(log(tmp_path), clock).batches(None, Event()))
    alarms = [alarm for batch in batches for alarm in batch.alarms]
    assert [alarm.at - NOW for alarm in alarms] == [timedelta(0), timedelta(seconds=10), timedelta(hours=1)]


def test_an_alarm_that_is_not_due_yet_is_waited_for(tmp_path: Path) -> None:
    stop = Event()
    batches = replay(log(tmp_path), clock_standing_at(NOW)).batches(None, stop)
    assert [alarm.code for alarm in next(batches).alarms] == [1]
    stop.set()
    assert list(batches) == []


def test_a_restart_goes_on_after_the_bookmark_with_the_same_shift(tmp_path: Path) -> None:
    path = log(tmp_path)
    first = next(iter(replay(path, clock_standing_at(NOW)).batches(None, Event())))
    later = clock_standing_at(NOW + timedelta(hours=5))
    rest = [alarm for batch in replay(path, later).batches(first.bookmark, Event()) for alarm in batch.alarms]
    assert [(alarm.code, alarm.at) for alarm in rest] == [
        (2, NOW + timedelta(seconds=10)),
        (3, NOW + timedelta(hours=1)),
    ]


def test_a_gzipped_log_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    (batch,) = replay(path, clock_standing_at(NOW), at_once=True).batches(None, Event())
    assert len(batch.alarms) == 3
