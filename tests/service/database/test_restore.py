"""Restores: all of it or nothing, from what the manifest names alone, and readable by nobody else."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.app.stores import Stores, open_stores
from service.database.backup import DATABASE, MANIFEST, RESTORE_MARKER, STAGING, WEIGHTS, back_up, restore
from service.database.files import digest_of
from service.errors import InputRejected
from service.settings import Settings
from tests.service.conftest import NOW, enrolled, small_model
from tests.system.conftest import clean_environment
from wire.identity import MachineId


@pytest.fixture
def backup(settings: Settings, stores: Stores, tmp_path: Path) -> Path:
    """A backup with one machine and one version."""
    enrolled(stores.enrolments, MachineId("a", "first"))
    stores.versions.add_and_promote(small_model(), report={"summary": "small"}, at=NOW)
    back_up(settings.data_dir, tmp_path / "backup")
    return tmp_path / "backup"


def test_a_restore_that_is_killed_before_any_step_leaves_the_old_store_or_the_new_one(
    settings: Settings, stores: Stores, backup: Path, tmp_path: Path
) -> None:
    enrolled(stores.enrolments, MachineId("a", "second"))
    crashed = shutil.copytree(settings.data_dir, tmp_path / "crashed")
    assert (crashed / f"{DATABASE}-wal").stat().st_size, "what was committed last is in the log alone"
    module = "tests.service.database.killed_restore"
    command = [sys.executable, "-m", module, str(crashed), str(backup), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    old, new = {"place": 2, "asides": []}, {"place": 1, "asides": [2]}
    outcomes = [{"place": step["place"], "asides": step["asides"]} for step in steps]
    assert all(outcome in (old, new) for outcome in outcomes), outcomes
    assert outcomes == sorted(outcomes, key=lambda outcome: outcome == new), "from one step on it goes forwards"
    assert old in outcomes
    assert [step["killed"] for step in steps] == [True] * (len(steps) - 1) + [False]
    assert sum(step["again"] for step in steps) > len(steps) // 2, "the start after it was killed as well"
    assert sum(outcome == new for outcome in outcomes) > 5
    assert not any(step["left"] for step in steps)


def test_no_backup_is_made_of_a_store_that_is_half_restored(settings: Settings, backup: Path) -> None:
    (settings.data_dir / RESTORE_MARKER).write_text('{"aside": null}', encoding="utf-8")
    with pytest.raises(InputRejected, match=r"was interrupted.*finishes the restore"):
        back_up(settings.data_dir, backup.with_name("another"))


def test_files_that_the_manifest_does_not_name_stay_where_they_are(backup: Path, tmp_path: Path) -> None:
    for name in ("stranger.safetensors", "notes.txt"):
        (backup / WEIGHTS / name).write_text("?", encoding="utf-8")
    (backup / f"{DATABASE}-wal").write_text("?", encoding="utf-8")
    manifest, _ = restore(backup, tmp_path / "new")
    found = {str(file.relative_to(tmp_path / "new")) for file in (tmp_path / "new").rglob("*") if file.is_file()}
    assert found == set(manifest.files)


def linked(backup: Path, name: str) -> None:
    file = backup / name
    kept = shutil.move(file, backup.with_name("elsewhere"))
    file.symlink_to(kept)


def weights(backup: Path) -> str:
    return str(next((backup / WEIGHTS).iterdir()).relative_to(backup))


def named_outside(backup: Path) -> None:
    secret = backup.with_name("secret")
    secret.write_text("secret", encoding="utf-8")
    found = json.loads((backup / MANIFEST).read_text(encoding="utf-8"))
    found["files"]["weights/../../secret"] = digest_of(secret)
    (backup / MANIFEST).write_text(json.dumps(found), encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda backup: linked(backup, DATABASE),
        lambda backup: linked(backup, MANIFEST),
        lambda backup: linked(backup, WEIGHTS),
        lambda backup: linked(backup, weights(backup)),
        named_outside,
    ],
    ids=["database", "manifest", "weights", "file", "outside"],
)
def test_links_and_paths_that_lead_out_of_a_backup_are_refused(
    backup: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    change(backup)
    with pytest.raises(InputRejected, match="backup"):
        restore(backup, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.fixture
def careless() -> Iterator[None]:
    """The mask of somebody who hides nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careless")
def test_only_the_owner_reads_store_backups_and_weights_whatever_the_mask(
    settings: Settings, stores: Stores, backup: Path, tmp_path: Path
) -> None:
    assert stores
    restore(backup, tmp_path / "new")
    with open_stores(settings.model_copy(update={"data_dir": tmp_path / "new"})):
        modes = {
            path: stat.S_IMODE(path.stat().st_mode)
            for folder in (settings.data_dir, backup, tmp_path / "new")
            for path in (folder, *folder.rglob("*"))
            if path.name != "alarmcast.lock"
        }
    names = {path.name for path in modes}
    assert {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", MANIFEST, WEIGHTS} <= names
    assert {path: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


def test_a_database_that_an_older_version_left_open_to_all_is_closed_at_the_next_start(settings: Settings) -> None:
    with open_stores(settings):
        (settings.data_dir / DATABASE).chmod(0o644)
    with open_stores(settings):
        assert stat.S_IMODE((settings.data_dir / DATABASE).stat().st_mode) == 0o640
        assert not (settings.data_dir / STAGING).exists()
