"""The spool: nothing leaves it but by an ack, nothing is numbered twice, what is dropped is told."""

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.errors import SpoolUnusable
from edge_agent.spool import Spool
from edge_agent.spool_models import NOTHING, Appendix, NamedCode, Transition
from edge_agent.status import inspect_spool
from tests.conftest import require
from wire.alarm import Alarm
from wire.codec import encode, exceeds_limit
from wire.events import EventBatch, GapReason, TransitionKind
from wire.state import Note

START = datetime(2026, 11, 16, tzinfo=UTC)


def alarms(count: int, first: int = 0) -> list[Alarm]:
    return [Alarm(START + timedelta(seconds=first + number), 100 + number % 7) for number in range(count)]


def test_events_are_numbered_from_one_and_keep_their_order_and_time(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(alarms(3), "here")
    events = spool.pending(0, 10).events
    assert [(event.seq, event.at) for event in events] == [
        (number + 1, START + timedelta(seconds=number)) for number in range(3)
    ]


def test_a_reopened_spool_has_the_same_epoch_bookmark_and_events(tmp_path: Path) -> None:
    first = Spool(tmp_path / "spool")
    first.append(alarms(5), "line 5")
    epoch = first.epoch
    first.close()
    again = Spool(tmp_path / "spool")
    assert (again.epoch, again.bookmark, again.depth().events) == (epoch, "line 5", 5)


def test_skipped_rows_are_counted_over_restarts_and_the_last_one_is_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    note = Note(text="byte 12: no time", at=START)
    spool.append(alarms(1), "a", Appendix(skipped=2, last_skipped=note))
    spool.append([], "b", Appendix(skipped=1, last_skipped=note.model_copy(update={"text": "byte 99: no code"})))
    spool.append(alarms(1), "c")
    spool.close()
    again = Spool(tmp_path / "spool")
    assert (again.skipped, again.last_skipped and again.last_skipped.text) == (3, "byte 99: no code")
    assert again.depth().events == 2


def test_transitions_are_numbered_among_the_alarms_in_the_order_of_the_source(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    jam, door = Alarm(START, 139), Alarm(START, 7)
    changes = [Transition(jam, TransitionKind.CLEARED, 1), Transition(door, TransitionKind.ACKNOWLEDGED, 2)]
    spool.append([jam, jam], "here", NOTHING, changes)
    pending = spool.pending(0, 10)
    assert [event.seq for event in pending.events] == [1, 3]
    assert [(one.seq, one.code, one.kind) for one in pending.transitions] == [
        (2, 139, TransitionKind.CLEARED),
        (4, 7, TransitionKind.ACKNOWLEDGED),
    ]
    assert pending.last_seq == 4
    assert spool.delete_acked(spool.epoch, [(1, 4)]) == 4
    assert spool.pending(0, 10).is_empty


def test_a_spool_of_the_first_layout_is_upgraded_in_place(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    Spool(path).close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE events")
        database.execute("DROP TABLE codes")
        database.execute(
            "CREATE TABLE events"
            " (seq INTEGER PRIMARY KEY AUTOINCREMENT, code INTEGER NOT NULL, at_us INTEGER NOT NULL)"
        )
        database.execute(
            "CREATE TABLE codes (name TEXT PRIMARY KEY, code INTEGER NOT NULL, text TEXT NOT NULL,"
            " severity TEXT NOT NULL) WITHOUT ROWID"
        )
        database.execute("INSERT INTO events VALUES (41, 7, 1700000000000000)")
        database.execute("INSERT INTO codes VALUES ('Door open', 7, '', '')")
    before = inspect_spool(path)
    assert before is not None
    assert (before.events, before.transitions) == (1, 0)
    spool = Spool(path)
    spool.append(alarms(1), "here", NOTHING, [Transition(Alarm(START, 7), TransitionKind.CLEARED, 0)])
    pending = spool.pending(0, 10)
    assert [(event.seq, event.code) for event in pending.events] == [(41, 7), (43, 100)]
    assert [(one.seq, one.kind) for one in pending.transitions] == [(42, TransitionKind.CLEARED)]
    assert [described.name for described in pending.codes] == ["Door open"]


def test_a_code_is_described_with_its_first_events_until_one_is_acked(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    door = NamedCode("Door open", 7, "The door\nis open", "high")
    spool.append([Alarm(START, 139)], "a")
    spool.append([Alarm(START, 7), Alarm(START, 7)], "b", Appendix(codes=(door,)))
    assert spool.pending(0, 1).codes == []
    (sent,) = spool.pending(1, 1).codes
    assert (sent.code, sent.name, sent.text, sent.severity) == (7, "Door open", "The door\ufffdis open", "high")
    assert len(spool.pending(2, 1).codes) == 1, "the first event may be lost on its way"
    spool.delete_acked(spool.epoch, [(1, 1), (3, 3)])
    assert len(spool.pending(0, 10).codes) == 1, "event 2, with which it was sent first, is not acked"
    spool.delete_acked(spool.epoch, [(2, 2)])
    spool.append([Alarm(START, 7)], "c")
    assert spool.pending(0, 10).codes == []
    spool.close()
    assert Spool(tmp_path / "spool").pending(0, 10).codes == []


def test_a_description_is_not_lost_with_an_evicted_event(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_events=2)
    spool.append([Alarm(START, 7)], "a", Appendix(codes=(NamedCode("Door open", 7, "", ""),)))
    assert len(spool.pending(0, 10).codes) == 1
    spool.append(alarms(2), "b")
    spool.delete_acked(spool.epoch, [(1, 3)])
    spool.append([Alarm(START, 7)], "c")
    assert [described.name for described in spool.pending(0, 10).codes] == ["Door open"]


def test_the_longest_descriptions_fit_into_messages_with_every_event(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    last = 10**9
    codes = [NamedCode(f"{'🔥' * 290}{number}", last + number, "🔥" * 500, "🔥" * 100) for number in range(20)]
    lost = [Appendix(lost=(START, START + timedelta(seconds=1)))] * 100
    for appendix in lost:
        spool.append([], "x", appendix)
    changes = [Transition(Alarm(START, last + n % 20), TransitionKind.ACKNOWLEDGED, 0) for n in range(1000)]
    spool.append([], "y", Appendix(codes=tuple(codes)), changes)
    described, seq, sent = set[int](), 0, 0
    while not (pending := spool.pending(seq, 500)).is_empty:
        batch = EventBatch(
            epoch=pending.epoch, transitions=pending.transitions, gaps=pending.gaps, codes=pending.codes
        )
        assert not exceeds_limit(encode(batch))
        described |= {one.code for one in pending.codes}
        assert {one.code for one in pending.transitions} <= described
        seq, sent = pending.last_seq, sent + len(pending.transitions)
        spool.delete_acked(spool.epoch, [(1, seq)])
    assert (len(described), sent) == (20, 1000)


def test_a_loss_at_the_source_is_a_gap_with_a_number_of_its_own(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_events=1000)
    spool.append(alarms(2), "")
    lost = (START + timedelta(hours=1), START + timedelta(hours=2))
    spool.append(alarms(2), "", Appendix(lost=lost))
    pending = spool.pending(0, 10)
    assert [event.seq for event in pending.events] == [1, 2, 4, 5]
    assert [(gap.seqs, gap.first_at, gap.last_at, gap.reason) for gap in pending.gaps] == [
        ((3, 3), *lost, GapReason.SOURCE_LOST)
    ]
    spool.delete_acked(spool.epoch, [(1, 5)])
    assert (spool.depth().events, spool.depth().gaps) == (0, 0)


def test_a_new_epoch_begins_once_nothing_waits_and_survives_a_restart(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    old = spool.epoch
    spool.append(alarms(2), "")
    assert spool.request_new_epoch()
    assert not spool.request_new_epoch()
    spool.delete_acked(old, [(1, 1)])
    assert (spool.epoch, spool.pending(0, 10).epoch) == (old, old), "event 2 may be stored already under it"
    spool.close()
    spool = Spool(tmp_path / "spool")
    spool.delete_acked(old, [(2, 2)])
    assert spool.epoch != old
    spool.append(alarms(1), "")
    assert spool.delete_acked(old, [(1, 9)]) == 0
    new = spool.epoch
    spool.close()
    again = Spool(tmp_path / "spool")
    assert (again.epoch, again.pending(0, 10).epoch) == (new, new)
    assert again.delete_acked(new, [(3, 3)]) == 1
    assert again.epoch == new


def test_another_file_is_another_epoch(tmp_path: Path) -> None:
    assert Spool(tmp_path / "one").epoch != Spool(tmp_path / "two").epoch


def test_only_what_an_ack_names_is_forgotten(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(alarms(10), "")
    assert spool.delete_acked(spool.epoch, [(2, 4), (8, 8), (50, 60)]) == 4
    assert [event.seq for event in spool.pending(0, 100).events] == [1, 5, 6, 7, 9, 10]
    assert spool.unacked_up_to(7) == 4


def test_an_ack_for_another_epoch_forgets_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(alarms(3), "")
    assert spool.delete_acked(uuid4(), [(1, 3)]) == 0
    assert spool.depth().events == 3


def test_a_number_is_never_given_twice_even_after_all_were_acked(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.append(alarms(3), "")
    spool.delete_acked(spool.epoch, [(1, 3)])
    spool.close()
    again = Spool(tmp_path / "spool")
    again.append(alarms(1), "")
    assert [event.seq for event in again.pending(0, 10).events] == [4]


def test_a_full_spool_drops_the_oldest_and_leaves_one_exact_gap(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_events=1000)
    for batch in range(12):
        spool.append(alarms(100, first=batch * 100), str(batch))
    pending = spool.pending(0, 2000)
    assert [event.seq for event in pending.events] == list(range(201, 1201))
    (gap,) = pending.gaps
    assert gap.seqs == (1, 200)
    assert (gap.first_at, gap.last_at) == (START, START + timedelta(seconds=199))


def test_a_gap_is_kept_until_its_own_ack(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_events=1000)
    spool.append(alarms(1100), "")
    spool.delete_acked(spool.epoch, [(101, 1100)])
    assert len(spool.pending(0, 10).gaps) == 1
    spool.delete_acked(spool.epoch, [(1, 100)])
    assert spool.pending(0, 10).gaps == []


def test_a_gap_that_has_grown_is_not_forgotten_by_the_ack_of_its_younger_self(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_events=1000)
    spool.append(alarms(1010), "")
    spool.append(alarms(10), "")
    spool.delete_acked(spool.epoch, [(1, 10)])
    assert [gap.seqs for gap in spool.pending(0, 10).gaps] == [(1, 20)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3000), st.integers(0, 200)), max_size=12))
def test_every_event_is_pending_acked_or_inside_a_gap(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int]]
) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool") / "spool", max_events=1000)
    appended, acked = 0, set()
    for more, ack_from, ack_length in steps:
        spool.append(alarms(more), "")
        appended += more
        here = {event.seq for event in spool.pending(0, 5000).events}
        named = {number for number in range(ack_from, ack_from + ack_length) if number in here}
        spool.delete_acked(spool.epoch, [(number, number) for number in sorted(named)])
        acked |= named
    pending = spool.pending(0, 5000)
    waiting = {event.seq for event in pending.events}
    missing = {number for gap in pending.gaps for number in range(gap.seqs[0], gap.seqs[1] + 1)}
    assert waiting | acked | missing == set(range(1, appended + 1))
    assert not waiting & acked
    assert not waiting & missing
    assert len(waiting) == spool.depth().events <= 1000


def test_a_second_agent_on_the_same_spool_is_refused(tmp_path: Path) -> None:
    first = Spool(tmp_path / "spool")
    with pytest.raises(SpoolUnusable, match="another agent is using it"):
        Spool(tmp_path / "spool")
    first.close()
    Spool(tmp_path / "spool").close()


def test_the_oldest_number_is_of_an_event_or_of_a_gap(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_events=1000)
    assert spool.oldest_seq() is None
    spool.append(alarms(1010), "")
    assert spool.oldest_seq() == 1
    spool.delete_acked(spool.epoch, [(1, 10)])
    assert spool.oldest_seq() == 11


def test_a_file_that_is_no_spool_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "spool"
    file.write_bytes(b"this is not a database, it is a letter" * 100)
    with pytest.raises(SpoolUnusable, match=r"Cannot use .* as spool"):
        Spool(file)


def full_story(spool: Spool, appended: int) -> tuple[set[int], set[int]]:
    """Return the numbers that wait and those that gaps name; together they must be all there are."""
    pending = spool.pending(0, 1_000_000)
    waiting = {event.seq for event in pending.events}
    missing = {number for gap in pending.gaps for number in range(gap.seqs[0], gap.seqs[1] + 1)}
    assert waiting | missing == set(range(1, appended + 1))
    assert not waiting & missing
    assert spool.depth().events == len(waiting)
    return waiting, missing


def test_a_spool_that_reaches_its_size_drops_the_oldest_and_leaves_one_exact_gap(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=1 << 20)
    for batch in range(200):
        spool.append(alarms(500, first=batch * 500), str(batch))
    _, missing = full_story(spool, 100_000)
    assert missing == set(range(1, max(missing) + 1))
    assert spool.bookmark == "199"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 1 << 20


def test_after_room_was_made_by_acks_nothing_gives_way_any_more(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=1 << 20)
    for batch in range(100):
        spool.append(alarms(500), str(batch))
    spool.delete_acked(spool.epoch, [(1, 50_000)])
    for batch in range(20):
        spool.append(alarms(500), str(batch))
    assert spool.depth().events == 10_000
    assert spool.pending(0, 10).gaps == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    require(subprocess.run(mount, check=False, capture_output=True).returncode == 0, "the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_on_a_disk_without_a_free_byte_the_oldest_give_way_and_acks_are_still_heard(small_disk: Path) -> None:
    spool = Spool(small_disk / "spool")
    for batch in range(10):
        spool.append(alarms(500), str(batch))
    with (small_disk / "somebody-elses").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 512)
    for batch in range(10, 60):
        spool.append(alarms(500), str(batch))
    waiting, missing = full_story(spool, 30_000)
    assert missing
    assert spool.bookmark == "59"
    assert spool.delete_acked(spool.epoch, [(min(waiting), max(waiting))]) == len(waiting)
    spool.close()
    again = Spool(small_disk / "spool")
    assert again.depth().events == 0
    assert again.bookmark == "59"
    again.close()
