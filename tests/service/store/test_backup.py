"""Backups: of one moment, whole or not there, refused when changed, and never at the price of what is there."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from service.bootstrap.stores import Stores, open_stores
from service.core.machine import Machine
from service.core.recording import EventRow, Recording
from service.errors import DatabaseDamaged, InputRejected
from service.settings import Settings
from service.store.backup import DATABASE, LAST, MANIFEST, WEIGHTS, back_up, check, last_backup, restore
from tests.service.conftest import EPOCH, NOW, enrolled, raise_alarms
from wire.identity import MachineId
from wire.micros import micros


def seqs(database: Path) -> list[int]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        return [seq for (seq,) in opened.execute("SELECT seq FROM events ORDER BY seq")]


def write_until(stores: Stores, machine: Machine, stop: Event) -> None:
    seq = 0
    while not stop.is_set():
        rows = [EventRow(machine.row, EPOCH, seq + place, 1, micros(NOW), 0) for place in range(1, 51)]
        stores.events.commit(Recording(micros(NOW), events=rows))
        seq += 50


@pytest.mark.usefixtures("champion")
def test_a_backup_made_while_the_service_writes_is_a_prefix_and_brings_everything_back(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path
) -> None:
    stop = Event()
    writer = Thread(target=write_until, args=(stores, filler, stop))
    writer.start()
    made = []
    for number in range(5):
        backup = tmp_path / f"backup-{number}"
        made.append(back_up(settings.data_dir, backup))
    stop.set()
    writer.join()
    for number, manifest in enumerate(made):
        kept = seqs(tmp_path / f"backup-{number}" / DATABASE)
        assert kept == list(range(1, manifest.events + 1))
        assert manifest.events % 50 == 0, "a transaction is whole or not there"
    elsewhere = settings.model_copy(update={"data_dir": tmp_path / "elsewhere"})
    restored, aside = restore(tmp_path / "backup-4", elsewhere.data_dir)
    assert (restored, aside) == (made[4], None)
    with open_stores(elsewhere, check=True) as opened:
        champion = opened.versions.champion()
        assert champion
        assert opened.versions.load(champion).vocabulary.targets == (139, 26)
        assert [machine.id for machine in opened.machines.all()] == [filler.id]


def test_what_was_there_before_is_put_aside(settings: Settings, tmp_path: Path) -> None:
    with open_stores(settings):
        back_up(settings.data_dir, tmp_path / "empty")
    with open_stores(settings) as stores:
        enrolled(stores.enrolments, MachineId("a", "b"))
    _, aside = restore(tmp_path / "empty", settings.data_dir)
    assert aside
    with closing(sqlite3.connect(aside / DATABASE)) as before:
        assert before.execute("SELECT count(*) FROM machines").fetchone() == (1,)
    with open_stores(settings, check=True) as stores:
        assert stores.machines.all() == []


@pytest.mark.parametrize("name", [DATABASE, MANIFEST, "weights"])
@pytest.mark.usefixtures("champion")
def test_a_backup_that_was_changed_is_refused_and_nothing_is_touched(
    settings: Settings, stores: Stores, filler: Machine, tmp_path: Path, name: str
) -> None:
    raise_alarms(stores, filler, (NOW - timedelta(hours=1), 1))
    backup = tmp_path / "backup"
    back_up(settings.data_dir, backup)
    file = backup / name if name != "weights" else next((backup / WEIGHTS).iterdir())
    body = bytearray(file.read_bytes())
    body[len(body) // 2] ^= 0xFF
    file.write_bytes(bytes(body))
    with pytest.raises(InputRejected, match="backup"):
        restore(backup, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere" / DATABASE).exists()


def test_a_folder_that_is_no_backup_and_one_that_exists_are_refused(
    settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    assert stores
    with pytest.raises(InputRejected, match="not a backup"):
        check(tmp_path / "nowhere")
    (tmp_path / "there").mkdir()
    with pytest.raises(InputRejected, match="exists already"):
        back_up(settings.data_dir, tmp_path / "there")
    with pytest.raises(InputRejected, match="no database"):
        back_up(tmp_path / "nowhere", tmp_path / "new")
    manifest = back_up(settings.data_dir, tmp_path / "new")
    newer = json.loads((tmp_path / "new" / MANIFEST).read_text()) | {"format": 99}
    (tmp_path / "new" / MANIFEST).write_text(json.dumps(newer))
    assert manifest.format == 1
    with pytest.raises(InputRejected, match="another version"):
        check(tmp_path / "new")


def test_when_the_last_backup_was_made_is_known_and_what_is_no_note_is_none(
    settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    assert stores
    assert last_backup(settings.data_dir) is None
    made = [back_up(settings.data_dir, tmp_path / name).made_at for name in ("first", "second")]
    noted = last_backup(settings.data_dir)
    assert noted
    assert noted.isoformat(timespec="seconds") == made[-1]
    for nonsense in ("", "{}", "[]", '{"made_at": 7}', '{"made_at": "yesterday"}'):
        (settings.data_dir / LAST).write_text(nonsense, encoding="utf-8")
        assert last_backup(settings.data_dir) is None


@pytest.mark.parametrize("damage", ["page", "head"])
def test_a_damaged_database_is_refused_at_the_start_with_the_way_back(
    settings: Settings, filler_history: Path, damage: str
) -> None:
    body = bytearray(filler_history.read_bytes())
    start = 0 if damage == "head" else len(body) // 2
    body[start : start + 8192] = b"\xa5" * 8192
    filler_history.write_bytes(bytes(body))
    with pytest.raises(DatabaseDamaged, match="alarmcast admin restore"), open_stores(settings, check=True):
        pass


@pytest.fixture
def filler_history(settings: Settings) -> Path:
    with open_stores(settings) as stores:
        enrolled(stores.enrolments, MachineId("a", "b"))
        machine = stores.machines.all()[0]
        raise_alarms(stores, machine, *((NOW - timedelta(seconds=place), place) for place in range(5000)))
    return settings.data_dir / DATABASE
