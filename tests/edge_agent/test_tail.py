"""Following a log file: each line once, through rotation, truncation and restarts."""

import hashlib
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pytest

from edge_agent.sources import Lost, SourceBatch
from edge_agent.sources.tail import Tail
from tests.conftest import wait_until
from wire.log_rows import RowReader


def line(number: int) -> str:
    return f"2026-11-16 08:{number // 60:02}:{number % 60:02},{number},1\n"


class Reader:
    """A tail in a thread, with what it has read so far and the bookmark to go on from."""

    def __init__(self, path: Path, bookmark: str | None = None) -> None:
        self.codes: list[int] = []
        self.skipped: list[str] = []
        self.lost: list[Lost] = []
        self.bookmark = bookmark
        self._stop = Event()
        tail = Tail(path, rows=RowReader(), poll_seconds=0.005)
        self._thread = Thread(target=self._run, args=(tail,))
        self._thread.start()

    def _run(self, tail: Tail) -> None:
        for batch in tail.batches(self.bookmark, self._stop):
            self._take(batch)

    def _take(self, batch: SourceBatch) -> None:
        self.codes += [alarm.code for alarm in batch.alarms]
        self.skipped += batch.skipped
        self.lost += [batch.lost] if batch.lost else []
        self.bookmark = batch.bookmark

    def until(self, count: int) -> "Reader":
        wait_until(lambda: len(self.codes) >= count, f"{count} lines are read")
        return self

    def stop(self) -> "Reader":
        self._stop.set()
        self._thread.join()
        return self


def append(path: Path, *numbers: int) -> None:
    with path.open("a") as file:
        file.writelines(line(number) for number in numbers)


def test_lines_are_read_as_they_come_and_the_path_may_not_exist_yet(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    reader = Reader(path)
    append(path, 1, 2)
    reader.until(2)
    append(path, 3)
    assert reader.until(3).stop().codes == [1, 2, 3]


def test_a_line_without_its_newline_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    path.write_text(line(1) + "2026-11-16 08:00:02,2")
    reader = Reader(path).until(1)
    with path.open("a") as file:
        file.write("2,1\n")
    assert reader.until(2).stop().codes == [1, 22]


def test_a_restart_goes_on_at_the_very_byte(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, 1, 2, 3)
    first = Reader(path).until(3).stop()
    append(path, 4, 5)
    assert Reader(path, first.bookmark).until(2).stop().codes == [4, 5]


def test_rotation_while_following_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, 1, 2)
    reader = Reader(path).until(2)
    path.rename(tmp_path / "alarms.csv.1")
    append(tmp_path / "alarms.csv.1", 3)  # the writer had the old file open still
    append(path, 4)
    assert sorted(reader.until(4).stop().codes) == [1, 2, 3, 4]


def test_rotation_while_the_agent_was_away_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, 1, 2)
    first = Reader(path).until(2).stop()
    append(path, 3)
    path.rename(tmp_path / "alarms.csv.1")
    append(path, 4, 5)
    assert Reader(path, first.bookmark).until(3).stop().codes == [3, 4, 5]


def test_several_rotations_while_the_agent_was_away_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, 1, 2)
    first = Reader(path).until(2).stop()
    append(path, 3)
    path.rename(tmp_path / "alarms.csv.2")
    os.utime(tmp_path / "alarms.csv.2", (1_000, 1_000))
    append(tmp_path / "alarms.csv.1", 4, 5)
    os.utime(tmp_path / "alarms.csv.1", (2_000, 2_000))
    append(tmp_path / "alarms.csv.bak", 99)  # a copy, not a rotation
    append(path, 6)
    assert Reader(path, first.bookmark).until(4).stop().codes == [3, 4, 5, 6]


def test_truncation_starts_the_file_again(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, 1, 2, 3)
    reader = Reader(path).until(3)
    path.write_text(line(4))
    assert reader.until(4).stop().codes == [1, 2, 3, 4]


def test_truncation_while_away_is_seen_even_if_the_file_has_grown_past_the_old_place(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, 1, 2)
    first = Reader(path).until(2).stop()
    path.write_text("".join(line(number) for number in range(10, 20)))
    assert Reader(path, first.bookmark).until(10).stop().codes == list(range(10, 20))


def replaced_by_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def test_a_log_that_is_replaced_by_a_copy_of_itself_is_not_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, *range(300))
    reader = Reader(path).until(300)
    replaced_by_a_copy(path)
    append(path, 300, 301)
    reader.until(302).stop()
    assert (reader.codes, reader.lost) == (list(range(302)), [])
    shutil.copy(path, tmp_path / "alarms.csv.1")  # a backup of it: the newest file with the place counts
    replaced_by_a_copy(path)
    append(path, 302)
    again = Reader(path, reader.bookmark).until(1).stop()
    assert (again.codes, again.lost) == ([302], [])


def test_a_copy_and_truncation_while_away_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, *range(20))
    first = Reader(path).until(20).stop()
    append(path, *range(20, 40))
    shutil.copy(path, tmp_path / "alarms.csv.1")
    os.truncate(path, 0)
    append(path, *range(40, 100))
    again = Reader(path, first.bookmark).until(80).stop()
    assert (again.codes, again.lost) == (list(range(20, 100)), [])


def test_a_copy_and_truncation_while_following_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, *range(20))
    reader = Reader(path).until(20)
    shutil.copy(path, tmp_path / "alarms.csv.1")
    append(path, 20)
    reader.until(21)  # so the copy is shorter than what was read
    os.truncate(path, 0)
    append(path, 21, 22)
    reader.until(23).stop()
    assert (reader.codes, reader.lost) == (list(range(23)), [])


@pytest.mark.parametrize("more", [0, 2, 400])
def test_a_truncation_while_away_without_a_copy_is_a_loss_since_the_last_alarm(tmp_path: Path, more: int) -> None:
    path = tmp_path / "alarms.csv"
    append(path, *range(20))
    first = Reader(path).until(20).stop()
    append(path, *range(20, 40))
    path.write_text("")
    append(path, *range(40, 40 + more))
    reader = Reader(path, first.bookmark)
    wait_until(lambda: reader.lost, "the loss is told")
    reader.until(more).stop()
    assert reader.codes == list(range(40, 40 + more))
    (lost,) = reader.lost
    assert lost.since == datetime(2026, 11, 16, 8, 0, 19, tzinfo=UTC)
    assert "alarms.csv was truncated or replaced while it was not read" in lost.message
    append(path, 999)
    again = Reader(path, reader.bookmark).until(1).stop()
    assert (again.codes, again.lost) == ([999], []), "it is told once"


def test_after_a_loss_files_that_were_rotated_since_are_read_before_the_path(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(tmp_path / "alarms.csv.9", 90)
    os.utime(tmp_path / "alarms.csv.9", (1_000, 1_000))
    append(path, 1, 2)
    first = Reader(path).until(2).stop()
    path.unlink()  # rotated away, and deleted or packed since
    append(tmp_path / "alarms.csv.1", 5, 6)
    append(path, 7)
    reader = Reader(path, first.bookmark).until(3).stop()
    assert (reader.codes, len(reader.lost)) == ([5, 6, 7], 1)


def test_a_log_that_is_cut_back_to_what_was_read_before_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, *range(100))
    size = path.stat().st_size
    append(path, *range(100, 200))
    first = Reader(path).until(200).stop()
    os.truncate(path, size)  # last night's copy of it was restored
    reader = Reader(path, first.bookmark)
    wait_until(lambda: reader.lost, "that something may be missing is told")
    append(path, 200)
    assert reader.until(1).stop().codes == [200]


def test_a_log_whose_oldest_rows_are_removed_is_read_on_after_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, *range(100))
    reader = Reader(path).until(100)
    path.with_name("new").write_text("".join(line(number) for number in range(50, 101)))
    path.with_name("new").rename(path)
    reader.until(101)
    append(path, 101)
    reader.until(102).stop()
    assert (reader.codes, reader.lost) == (list(range(102)), [])


def test_a_bookmark_of_an_older_agent_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, 1, 2, 3)
    size = len(line(1))
    digest = hashlib.sha256(path.read_bytes()[:size]).hexdigest()[:16]
    old = {"inode": path.stat().st_ino, "offset": size, "head_bytes": size, "head_digest": digest}
    assert Reader(path, json.dumps(old)).until(2).stop().codes == [2, 3]


def test_a_line_that_is_no_alarm_is_told_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    path.write_bytes(b"timestamp,alarm,serial\nrubbish\n\xff\xfe,1\n" + line(1).encode())
    reader = Reader(path).until(1).stop()
    assert reader.codes == [1]
    assert len(reader.skipped) == 2


def test_more_lines_than_a_batch_holds_all_arrive_in_order(tmp_path: Path) -> None:
    path = tmp_path / "alarms.csv"
    append(path, *range(1800))
    assert Reader(path).until(1800).stop().codes == list(range(1800))
