"""A machine's past in bulk: judged row by row, loaded once however often it is loaded."""

import gzip
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Condition
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select

from alarmcast import Client, InProcess
from edge_agent.simulator.log_file import write_log
from service.app.service import Service
from service.app.stores import Stores
from service.database.tables import events, quarantine
from service.errors import Conflict, Gone, InputRejected, TooMany, Unavailable
from service.ingest.build import time_policy
from service.learning.history_file import ImportFile
from service.learning.history_import import ImportResult, load_history
from service.learning.history_uploads import UploadLimits
from service.machines.events import EventWrite, EventWriter, WriteResult
from service.machines.models import Machine
from service.settings import Settings
from tests.conftest import wait_until
from tests.service.conftest import NOW, enrolled, raise_alarms
from wire.enums import HistoryState
from wire.identity import MachineId
from wire.log_rows import RowReader
from wire.rest.enrolment import HistoryUnderWay
from wire.timestamps import to_us

CHECK = "Check the time zone of the log, and the clock of the machine that wrote it."


def load(settings: Settings, stores: Stores, machine: Machine, log: ImportFile) -> ImportResult:
    policy = time_policy(settings)
    return load_history(machine, log, recorder=stores.events, now=NOW, policy=policy, stored=stores.events)


def test_loading_twice_changes_nothing(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    log = tmp_path / "history.csv"
    write_log(log, machines=2, days=20, end=NOW, seed=19)
    first = load(settings, stores, filler, ImportFile(log, serial="1"))
    assert first.stored > 100
    again = load(settings, stores, filler, ImportFile(log, serial="1"))
    assert (again.stored, again.duplicates) == (0, first.stored)


def test_a_row_that_is_no_alarm_is_quarantined_and_the_rest_is_loaded(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("timestamp,alarm,serial\n2026-11-10 08:00:00,5,1\nrubbish\n1990-01-01 00:00:00,5,1\n")
    loaded = load(settings, stores, filler, ImportFile(log, name="may.csv"))
    assert (loaded.stored, loaded.rejected) == (1, 2)
    with stores.database.read() as connection:
        kept = connection.execute(select(quarantine.c.topic, quarantine.c.detail)).all()
    assert {row.topic for row in kept} == {"history:may.csv"}
    assert any(row.detail.startswith("line 3: ") for row in kept)


def test_a_gzipped_log_is_known_by_its_bytes_not_by_its_name(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_bytes(gzip.compress(b"timestamp,alarm,serial\n2026-11-10 08:00:00,5,1\n"))
    assert load(settings, stores, filler, ImportFile(log)).stored == 1


@pytest.mark.parametrize("damage", ["cut short", "followed by rubbish"])
def test_a_broken_file_is_refused_before_a_row_is_stored(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path, damage: str
) -> None:
    plain, packed = tmp_path / "plain.csv", tmp_path / "packed.csv.gz"
    write_log(plain, machines=1, days=200, end=NOW, seed=19)
    whole = gzip.compress(plain.read_bytes())
    packed.write_bytes(whole[: len(whole) * 9 // 10] if damage == "cut short" else whole + b"rubbish")
    with pytest.raises(InputRejected, match=r"Cannot read may.csv.gz: .+"):
        load(settings, stores, filler, ImportFile(packed, name="may.csv.gz"))
    assert stores.events.first_at(filler) is None
    packed.write_bytes(whole)
    stored = load(settings, stores, filler, ImportFile(packed)).stored
    again = load(settings, stores, filler, ImportFile(plain))
    assert (again.stored, again.duplicates) == (0, stored), "packed or not, it is the same file"


def test_a_file_that_unpacks_to_one_endless_line_is_refused(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(InputRejected, match="is no log of alarms"):
        load(settings, stores, filler, ImportFile(bomb))


def test_long_lines_take_no_more_memory_than_short_ones(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    log, lines = tmp_path / "long.csv.gz", 100
    long = b"a" * 500_000 + "\U0001f600\n".encode()  # one such character makes the whole line four times as large
    log.write_bytes(gzip.compress(b"timestamp,alarm,serial\n2026-11-10 08:00:00,5,1\n" + long * lines, 1))
    tracemalloc.start()
    loaded = load(settings, stores, filler, ImportFile(log))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (loaded.stored, loaded.rejected) == (1, lines)
    assert peak < 60_000_000


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "wrong.csv is empty"),
        (b"timestamp,alarm,serial\n", "wrong.csv has no row"),
        (
            b"\xfe rubbish\n" * 5_000,
            "none of its first 1,000 lines is one. Nothing was stored. Line 1: a row needs",
        ),
        (b"Zeit;Code\n16.11.2026 08:00:00;139\n" * 3, "separated by a comma; this one has semicolons"),
        (b"16.11.2026 08:00:00,139\n", "'16.11.2026 08:00:00' is not a timestamp like 2026-11-16 08:00"),
        (b"2026-11-10 08:00:00,F139,1\n", "'F139' is not an alarm code .a whole number from 0 to"),
        (b"PK\x03\x04\x00\x00rubbish\n", "it is a ZIP archive or an Excel workbook; save its rows as CSV"),
        ("2026-11-10 08:00:00,5,1\n".encode("utf-16"), "it is text in UTF-16; save it as UTF-8"),
        (b"\x7fELF\x00rubbish|\n", "it is no text file; save its rows as CSV"),
    ],
)
def test_a_file_without_alarms_is_refused_and_leaves_nothing(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path, content: bytes, why: str
) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(content)
    with pytest.raises(InputRejected, match=why):
        load(settings, stores, filler, ImportFile(log, name="wrong.csv"))
    with stores.database.read() as connection:
        assert connection.execute(select(quarantine)).all() == []


def test_a_service_that_stops_waits_for_the_batch_at_hand_and_takes_no_more(
    service: Service, filler: Machine, tmp_path: Path
) -> None:
    log = tmp_path / "history.csv"
    write_log(log, machines=1, days=900, end=NOW, seed=19)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(service.learning.history.load, filler, ImportFile(log))
        wait_until(lambda: service.stores.events.first_at(filler) is not None, "some of it is stored")
        service.learning.history.stop()
        stored = len(service.stores.events.series(filler, NOW - timedelta(days=2000), NOW))
        with pytest.raises(Unavailable, match="Load the file again"):
            loading.result()
    assert len(service.stores.events.series(filler, NOW - timedelta(days=2000), NOW)) == stored
    with pytest.raises(Unavailable):
        service.learning.history.load(filler, ImportFile(log))


def test_a_machine_that_is_let_go_while_its_past_is_loaded_gets_no_more_of_it(
    service: Service, filler: Machine, tmp_path: Path
) -> None:
    log = tmp_path / "history.csv"
    write_log(log, machines=1, days=900, end=NOW, seed=19)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(service.learning.history.load, filler, ImportFile(log))
        wait_until(lambda: service.stores.events.first_at(filler) is not None, "some of it is stored")
        service.learning.enrolment.retire(filler.id, who="test", reason=None)
        with pytest.raises(Gone, match="has been retired"):
            loading.result()


def test_uploads_are_limited_by_site_by_person_and_in_all(service: Service, stores: Stores) -> None:
    machines = [enrolled(stores.enrolments, MachineId(f"site-{place}", "a")) for place in range(9)]
    loader = service.learning.history
    loader.limits = UploadLimits(in_all=4, per_owner=2)
    with ExitStack() as held:
        for who in ("maria", "paul"):
            held.enter_context(loader.upload(machines[0], who))
        with pytest.raises(TooMany, match="2 history files of site site-0"), loader.upload(machines[0], "anna"):
            pass
        held.enter_context(loader.upload(machines[1], "maria"))
        with pytest.raises(TooMany, match="2 history files of user maria"), loader.upload(machines[2], "maria"):
            pass
        held.enter_context(loader.upload(machines[2], "anna"))
        with pytest.raises(TooMany, match="4 history files in all") as refused, loader.upload(machines[3], "otto"):
            pass
        assert refused.value.retry_after == 30
    with loader.upload(machines[0], "maria"):
        assert len(list(loader.folder.iterdir())) == 1


@dataclass
class Meeting:
    """A recorder in which commits wait a moment for each other; ``most`` met at once."""

    real: EventWriter
    inside: int = 0
    most: int = 0
    changed: Condition = field(default_factory=Condition)

    def commit(self, recording: EventWrite) -> WriteResult:
        with self.changed:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most > 1, timeout=0.3)
            self.inside -= 1
        return self.real.commit(recording)


@pytest.mark.parametrize(("loading", "most"), [(1, 1), (2, 2)])
def test_files_are_stored_so_many_at_once_and_the_others_wait_for_their_turn(
    service: Service, filler: Machine, tmp_path: Path, loading: int, most: int
) -> None:
    log, meeting = tmp_path / "history.csv", Meeting(service.learning.history.recorder)
    write_log(log, machines=3, days=20, end=NOW, seed=19)
    service.learning.history.recorder = meeting
    service.learning.history.limits = UploadLimits(loading=loading)
    with ThreadPoolExecutor(3) as pool:
        loads = [pool.submit(service.learning.history.load, filler, ImportFile(log, serial=one)) for one in "012"]
        assert all(one.result().stored > 0 for one in loads)
    assert meeting.most == most


def test_who_waits_for_their_turn_is_sent_away_when_the_service_stops(
    service: Service, filler: Machine, tmp_path: Path
) -> None:
    service.learning.history.limits = UploadLimits(loading=0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.learning.history.load, filler, ImportFile(tmp_path / "any.csv"))
        service.learning.history.stop()
        with pytest.raises(Unavailable, match="The service stops"):
            waiting.result(30)


def test_whoever_waits_is_told_how_far_the_file_is(service: Service, filler: Machine, tmp_path: Path) -> None:
    log = tmp_path / "history.csv"
    write_log(log, machines=1, days=900, end=NOW, seed=19)
    rows = log.read_bytes()
    client = Client("http://here", key=service.key, transport=InProcess(service.app))
    nothing = HistoryUnderWay(state=HistoryState.IDLE, bytes=0, lines_done=0, lines=None)
    assert client.enrolment.history(filler.id) == nothing
    with service.learning.history.upload(filler, "test") as upload:
        upload.write(rows)
        told = client.enrolment.history(filler.id)
        assert (told.state, told.bytes, told.lines) == (HistoryState.RECEIVING, len(rows), None)
        service.learning.history.load(filler, ImportFile(upload.path), upload)
        told = client.enrolment.history(filler.id)
        assert (told.state, told.lines) == (HistoryState.STORING, rows.count(b"\n"))
        assert 10_000 < told.lines_done <= rows.count(b"\n")
    assert client.enrolment.history(filler.id) == nothing


def written(folder: Path, *rows: tuple[datetime, int, str]) -> Path:
    log = folder / "log.csv"
    lines = [f"{at:%Y-%m-%d %H:%M:%S},{code},{serial}\n" for at, code, serial in rows]
    log.write_text("timestamp,alarm,serial\n" + "".join(lines))
    return log


def nothing_is_kept(stores: Stores) -> bool:
    with stores.database.read() as connection:
        kept = [connection.execute(select(table)).first() for table in (events, quarantine)]
    return kept == [None, None]


def test_rows_of_a_time_that_cannot_be_are_counted_and_not_stored(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    days = [NOW - timedelta(days=500), NOW - timedelta(days=450), NOW - timedelta(days=1), NOW + timedelta(days=1)]
    log = written(tmp_path, *((day, 5, "1") for day in days))
    loaded = load(settings, stores, filler, ImportFile(log))
    assert (loaded.rows, loaded.stored, loaded.too_old, loaded.from_the_future) == (4, 1, 2, 1)
    assert loaded.last_us == to_us(days[2]), "an agent that goes on after a time in the future would send nothing"
    assert loaded.notes == [
        f"2 ignored: older than retention_days=400 (newest {days[1]:%Y-%m-%d}).",
        f"1 ignored: in the future (first {days[3]:%Y-%m-%d %H:%M} UTC). {CHECK}",
    ]
    assert stores.events.flagged(filler) == 0
    patient = settings.model_copy(update={"retention_days": 1000})
    again = load(patient, stores, filler, ImportFile(log))
    assert (again.stored, again.duplicates, again.too_old) == (2, 1, 0), "with a longer retention they count"


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (timedelta(days=-2500), "is too old: its newest alarm is of 20.., and only the last 400 days count"),
        (timedelta(days=30), "lie in the future, the first at"),
    ],
)
def test_a_past_of_which_nothing_would_count_is_refused_and_leaves_nothing(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path, shift: timedelta, words: str
) -> None:
    log = written(tmp_path, *((NOW + shift + timedelta(hours=n), 5, "1") for n in range(1500)))
    with log.open("a") as file:
        file.write("rubbish\n")
    with pytest.raises(InputRejected, match=words.replace("20..", r"20\d\d-\d\d-\d\d")) as refused:
        load(settings, stores, filler, ImportFile(log, name="old.csv"))
    assert "Nothing was stored" in str(refused.value)
    assert nothing_is_kept(stores)


def test_a_file_of_several_machines_is_refused_unless_one_is_chosen(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    at = NOW - timedelta(days=1)
    log = written(tmp_path, (at, 5, "4711"), (at, 6, "4711"), (at, 7, "x 12"), (at, 8, ""))
    with pytest.raises(InputRejected, match=r"Its serials: 4711 \(2 rows\), x 12 \(1 row\)\.") as refused:
        load(settings, stores, filler, ImportFile(log, name="two.csv"))
    assert refused.value.pointer == "query/serial"
    with pytest.raises(InputRejected, match=r"two.csv has no row of serial 9. Its serials: 4711 \(2 rows\)"):
        load(settings, stores, filler, ImportFile(log, serial="9", name="two.csv"))
    assert nothing_is_kept(stores)
    assert load(settings, stores, filler, ImportFile(log, serial="4711")).stored == 2


def test_many_serials_are_named_in_a_few_words(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    log = written(
        tmp_path, *((NOW - timedelta(days=1), 5, f"{'s' * 300}{n}" if n % 2 else str(n)) for n in range(9000))
    )
    with pytest.raises(InputRejected, match="and at least 990 more") as refused:
        load(settings, stores, filler, ImportFile(log))
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("serials", [("", ""), ("1", "")])
def test_rows_without_a_serial_are_no_other_machine(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path, serials: tuple[str, str]
) -> None:
    log = written(tmp_path, *((NOW - timedelta(days=1), 5, serial) for serial in serials))
    assert load(settings, stores, filler, ImportFile(log)).stored == 2


def test_local_times_are_stored_as_the_moments_at_which_the_agent_would_send_them(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    zone = ZoneInfo("Europe/Rome")
    start = datetime(2026, 10, 24, 12)  # noqa: DTZ001 - local: an hour of the next night occurs twice
    rows = [(start + timedelta(minutes=5 * n), n, "1") for n in range(300)]
    log = written(tmp_path, *rows)
    assert load(settings, stores, filler, ImportFile(log, zone=zone)).stored == 300
    reader = RowReader("1", zone)
    expected = [alarm for line in log.read_text().splitlines() if (alarm := reader.read(line)) is not None]
    stored = stores.events.series(filler, NOW - timedelta(days=100), NOW)
    assert sorted(zip(stored.times.tolist(), stored.codes.tolist(), strict=True)) == sorted(
        (to_us(alarm.at), alarm.code) for alarm in expected
    )


def test_the_same_file_read_in_another_zone_is_refused_and_not_stored_a_second_time(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    log = written(tmp_path, *((NOW - timedelta(days=2, minutes=n), 5, "1") for n in range(2500)))
    first = load(settings, stores, filler, ImportFile(log))
    with pytest.raises(Conflict, match=r"read in another time zone.*erase the machine") as refused:
        load(settings, stores, filler, ImportFile(log, zone=ZoneInfo("Europe/Rome")))
    assert refused.value.pointer == "query/time_zone"
    stored = stores.events.series(filler, NOW - timedelta(days=100), NOW)
    assert len(stored.times) == first.stored == 2500
    with stores.database.read() as connection:
        assert len(connection.execute(select(quarantine)).all()) <= 1


def test_a_log_that_has_grown_adds_only_what_is_new(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    rows = [(NOW - timedelta(days=40) + timedelta(minutes=n), n % 7, "1") for n in range(25_000)]
    first = load(settings, stores, filler, ImportFile(written(tmp_path, *rows[:12_000])))
    assert (first.stored, first.duplicates) == (12_000, 0)
    grown = load(settings, stores, filler, ImportFile(written(tmp_path, *rows)))
    assert (grown.stored, grown.duplicates) == (13_000, 12_000)
    again = load(settings, stores, filler, ImportFile(tmp_path / "log.csv"))
    assert (again.stored, again.duplicates) == (0, 25_000)
    series = stores.events.series(filler, NOW - timedelta(days=100), NOW)
    assert len(set(zip(series.times.tolist(), series.codes.tolist(), strict=True))) == len(series.times) == 25_000


def test_what_the_agent_has_sent_is_not_stored_again_from_a_file(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    rows = [(NOW - timedelta(hours=n), n % 3, "1") for n in range(10, 0, -1)]
    raise_alarms(stores, filler, *((at, code) for at, code, _ in rows[4:8]))
    other = (rows[4][0], 99, "1")  # of the same moment, but another alarm
    loaded = load(settings, stores, filler, ImportFile(written(tmp_path, *rows, other)))
    assert (loaded.stored, loaded.duplicates) == (7, 4)
