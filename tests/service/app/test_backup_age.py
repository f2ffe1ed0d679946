"""Backups that fail, grow old or are never made are said on status, until somebody does not want to hear of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.app.service import Service
from service.app.warnings import BackupWatch
from service.database.backup import back_up, record_success
from service.errors import InputRejected
from service.settings import Settings

NOW = datetime(2026, 11, 16, 8, 7, tzinfo=UTC)


def watch(settings: Settings, now: datetime = NOW, **changes: object) -> BackupWatch:
    settings.data_dir.mkdir(exist_ok=True)
    return BackupWatch(settings.model_copy(update=changes), now=lambda: now)


def test_a_backup_older_than_the_limit_is_warned_of_and_a_younger_one_is_not(settings: Settings) -> None:
    fresh = watch(settings)
    record_success(settings.data_dir, (NOW - timedelta(hours=48)).isoformat())
    assert fresh.warnings() == {}
    old = replace(fresh, now=lambda: NOW + timedelta(hours=2))
    assert old.warnings()["backup"].startswith("The last backup is 50 hours old; backup_max_age_hours is 48.")
    assert watch(settings, NOW + timedelta(hours=2), backup_max_age_hours=72).warnings() == {}
    assert watch(settings, NOW + timedelta(days=900), backup_max_age_hours=0).warnings() == {}


def test_a_store_that_never_had_a_backup_is_warned_of_once_it_is_older_than_the_limit(settings: Settings) -> None:
    new = watch(settings)
    assert new.warnings() == {}
    new.begin()
    assert new.warnings() == {}
    later = watch(settings, NOW + timedelta(hours=49))
    later.begin()  # the service was started again
    assert later.warnings()["backup"].startswith("There is no backup, and the database is 49 hours old")


def test_of_another_databases_backups_nothing_is_known(settings: Settings) -> None:
    elsewhere = watch(settings, database_url="postgresql+psycopg://somewhere/alarmcast")
    elsewhere.begin()
    assert list(settings.data_dir.iterdir()) == []
    assert replace(elsewhere, now=lambda: NOW + timedelta(days=9)).warnings() == {}


def test_a_backup_that_failed_is_a_warning_until_the_next_good_one(service: Service, tmp_path: Path) -> None:
    back_up(service.settings.data_dir, tmp_path / "backup")
    assert "backup" not in service.health().warnings
    with pytest.raises(InputRejected):
        back_up(service.settings.data_dir, tmp_path / "backup")
    warning = service.health().warnings["backup"]
    assert "failed, and the last good one is of 20" in warning
    assert f"{tmp_path / 'backup'} exists already; name a new folder for the backup." in warning
    back_up(service.settings.data_dir, tmp_path / "another")
    assert "backup" not in service.health().warnings
