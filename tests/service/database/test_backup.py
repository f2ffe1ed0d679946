"""Backups: of one moment, whole or not there, refused when changed, and never at the price of what is there."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from service.app.stores import Stores, open_stores
from service.database.backup import (
    DATABASE,
    MANIFEST,
    RECORD,
    WEIGHTS,
    BackupRecord,
    back_up,
    check,
    read_record,
    restore,
)
from service.database.copy import copy_database
from service.database.copy_endpoint import open_endpoint
from service.database.event_row import EventRow
from service.errors import DatabaseDamaged, InputRejected, Unavailable
from service.forecasts.version import Version
from service.machines.event_write import EventWrite
from service.machines.models import Machine
from service.settings import Settings
from tests.conftest import require
from tests.service.conftest import EPOCH, NOW, enrolled, raise_alarms, small_model
from wire.identity import MachineId
from wire.timestamps import to_us


def seqs(database: Path) -> list[int]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        return [seq for (seq,) in opened.execute("SELECT seq FROM events ORDER BY seq")]


def write_until(stores: Stores, machine: Machine, stop: Event) -> None:
    seq = 0
    while not stop.is_set():
        rows = [EventRow(machine.row_id, EPOCH, seq + place, 1, to_us(NOW), 0) for place in range(1, 51)]
        stores.events.commit(EventWrite(to_us(NOW), events=rows))
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


def test_when_the_last_backup_was_made_is_known_and_a_file_without_sense_records_nothing(
    settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    assert stores
    assert read_record(settings.data_dir) == BackupRecord()
    made = [back_up(settings.data_dir, tmp_path / name).made_at for name in ("first", "second")]
    noted = read_record(settings.data_dir).made_at
    assert noted
    assert noted.isoformat(timespec="seconds") == made[-1]
    for nonsense in ("", "{}", "[]", '{"made_at": 7}', '{"made_at": "yesterday"}', '{"made_at": "2026-01-01"}'):
        (settings.data_dir / RECORD).write_text(nonsense, encoding="utf-8")
        assert read_record(settings.data_dir) == BackupRecord()


@pytest.fixture
def three(stores: Stores) -> list[Version]:
    """Three versions, of which the last one serves."""
    add = stores.versions.add_and_promote
    return [add(small_model(seed=seed), report={"summary": "small"}, at=NOW) for seed in range(3)]


def weights_of(*versions: Version) -> set[str]:
    return {f"{WEIGHTS}/{version.weights}.safetensors" for version in versions}


def test_a_store_whose_versions_were_pruned_is_backed_up_restored_and_copied(
    settings: Settings, stores: Stores, three: list[Version], tmp_path: Path
) -> None:
    assert stores.versions.prune(keep=1) == ["v2", "v1"]
    made = back_up(settings.data_dir, tmp_path / "backup")
    assert (set(made.files), made.lost) == ({DATABASE, *weights_of(three[2])}, ())
    restore(tmp_path / "backup", tmp_path / "elsewhere")
    with open_endpoint(str(tmp_path / "elsewhere")) as source, open_endpoint(str(tmp_path / "copy")) as target:
        assert copy_database(source, target, on_progress=lambda *_: None).lost == ()
    for folder in ("elsewhere", "copy"):
        there = settings.model_copy(update={"data_dir": tmp_path / folder})
        with open_stores(there, check=True) as restored:
            assert [version.pruned for version in restored.versions.all()] == [False, True, True]
            serving = restored.versions.champion()
            assert serving == three[2]
            assert restored.versions.load(serving).vocabulary == small_model().vocabulary


def test_a_version_that_is_pruned_while_the_backup_is_made_is_left_out(
    settings: Settings, stores: Stores, three: list[Version], tmp_path: Path
) -> None:
    weights = str(settings.data_dir / f"{WEIGHTS}/{three[0].weights}.safetensors")
    pruned = False

    def prune_meanwhile(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal pruned
        if not pruned and event == "open" and str(arguments[0]) == weights:
            pruned = True  # for good: a hook stays for as long as its process
            stores.versions.prune(keep=1)

    sys.addaudithook(prune_meanwhile)
    made = back_up(settings.data_dir, tmp_path / "backup")
    assert pruned
    assert made.lost == ()
    assert weights_of(three[2]) <= set(made.files)
    assert weights_of(three[0]).isdisjoint(made.files)
    assert check(tmp_path / "backup") == made


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_store_that_has_lost_weights_is_backed_up_and_says_so(
    settings: Settings, three: list[Version], tmp_path: Path, damage: str
) -> None:
    file = settings.data_dir / weights_of(three[1]).pop()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    made = back_up(settings.data_dir, tmp_path / "backup")
    assert (made.lost, set(made.files)) == (("v2",), {DATABASE, *weights_of(three[0], three[2])})
    assert check(tmp_path / "backup") == made


def test_a_backup_that_fails_is_recorded_and_a_good_one_ends_that(
    settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    assert stores
    made = back_up(settings.data_dir, tmp_path / "good")
    with pytest.raises(InputRejected):
        back_up(settings.data_dir, tmp_path / "good")
    record = read_record(settings.data_dir)
    assert record.failed
    assert "exists already" in str(record.error)
    assert record.made_at == datetime.fromisoformat(made.made_at)
    back_up(settings.data_dir, tmp_path / "better")
    assert not read_record(settings.data_dir).failed


def test_a_disk_that_is_full_costs_the_backup_and_leaves_nothing_but_the_one_before(
    settings: Settings, filler_history: Path, small_disk: Path
) -> None:
    room = filler_history.stat().st_size
    with small_disk.joinpath("padding").open("wb") as padding:
        padding.write(bytes(shutil.disk_usage(small_disk).free - room * 3 // 2))
    before = back_up(settings.data_dir, small_disk / "monday")
    with pytest.raises(Unavailable, match=f"no space left in {small_disk}.*on another disk"):
        back_up(settings.data_dir, small_disk / "tuesday")
    assert {file.name for file in small_disk.iterdir()} == {"padding", "monday"}
    assert check(small_disk / "monday") == before
    assert "no space left" in str(read_record(settings.data_dir).error)


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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    require(subprocess.run(mount, check=False, capture_output=True).returncode == 0, "the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
