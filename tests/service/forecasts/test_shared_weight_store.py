"""Weights that hosts share through PostgreSQL: each host's folder is a cache, which heals itself."""

import time
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import delete, select

from forecasting.forecaster import Forecaster
from service.database.engine import Database
from service.database.tables import weights
from service.database.weight_files import WeightsFolder
from service.errors import Unavailable
from service.forecasts.version_store import VersionStore
from tests.service.conftest import small_model

AT = datetime(2026, 11, 16, tzinfo=UTC)
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def host(database: Database, folder: Path) -> VersionStore:
    return VersionStore(database, WeightsFolder(folder))


def kept(database: Database) -> list[str]:
    with database.read() as connection:
        return list(connection.execute(select(weights.c.sha256).order_by(weights.c.sha256)).scalars())


def same(first: Forecaster, second: Forecaster) -> bool:
    features = np.eye(3, dtype=np.float32)
    return np.array_equal(first.network.logits(features), second.network.logits(features))


@on_postgresql
def test_a_host_that_has_never_seen_a_version_serves_it_and_keeps_a_file(
    database: Database, tmp_path: Path
) -> None:
    version = host(database, tmp_path / "a").add_and_promote(small_model(), report={}, at=AT)
    assert same(host(database, tmp_path / "b").load(version), small_model())
    (original,), (copy,) = (list((tmp_path / name).iterdir()) for name in "ab")
    assert (original.name, original.read_bytes()) == (copy.name, copy.read_bytes())


@on_postgresql
@pytest.mark.parametrize("damage", [b"", b"nonsense"])
def test_a_damaged_file_is_written_again(database: Database, tmp_path: Path, damage: bytes) -> None:
    versions = host(database, tmp_path)
    version = versions.add_and_promote(small_model(), report={}, at=AT)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    assert same(versions.load(version), small_model())
    assert file.read_bytes() == whole


@on_postgresql
def test_what_was_learned_before_the_database_kept_weights_is_given_to_it(
    database: Database, tmp_path: Path
) -> None:
    version = host(database, tmp_path).add_and_promote(small_model(), report={}, at=AT)
    with database.write() as connection:
        connection.execute(delete(weights))
    reading = Database(database.url, read_only=True)
    host(reading, tmp_path).load(version)
    reading.close()
    assert kept(database) == [], "whoever learns only reads"
    host(database, tmp_path).load(version)
    assert kept(database) == [version.weights]


@on_postgresql
def test_weights_that_are_nowhere_are_an_error_that_says_so(database: Database, tmp_path: Path) -> None:
    version = host(database, tmp_path / "a").add_and_promote(small_model(), report={}, at=AT)
    with database.write() as connection:
        connection.execute(delete(weights))
    with pytest.raises(Unavailable, match="Restore them"):
        host(database, tmp_path / "b").load(version)


@on_postgresql
def test_a_folder_that_takes_no_file_is_an_error_that_says_so(database: Database, tmp_path: Path) -> None:
    version = host(database, tmp_path / "a").add_and_promote(small_model(), report={}, at=AT)
    (tmp_path / "b").write_text("no folder")
    with pytest.raises(Unavailable, match=r"cannot be kept in .*/b: .* Make room"):
        host(database, tmp_path / "b").load(version)


@on_postgresql
def test_pruned_weights_go_unless_another_version_has_the_same(database: Database, tmp_path: Path) -> None:
    versions = host(database, tmp_path)
    for seed in (1, 2, 3, 1):
        versions.add_and_promote(small_model(seed=seed), report={}, at=AT)
    assert versions.prune(keep=1) == ["v3", "v2", "v1"]
    champion = versions.champion()
    assert champion
    assert kept(database) == [champion.weights]
    assert same(versions.load(champion), small_model(seed=1))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_on_sqlite_weights_are_files_alone(database: Database, tmp_path: Path) -> None:
    versions = host(database, tmp_path / "weights")
    version = versions.add_and_promote(small_model(), report={}, at=AT)
    versions.load(version)
    assert kept(database) == []


@on_postgresql
def test_a_host_clears_its_folder_of_what_another_one_has_pruned_and_of_nothing_else(
    database: Database, tmp_path: Path
) -> None:
    first, second = host(database, tmp_path / "a"), host(database, tmp_path / "b")
    made = [first.add_and_promote(small_model(seed=seed), report={}, at=AT) for seed in (1, 2, 3)]
    for version in made:
        second.load(version)
    foreign = second.weights.save(small_model(seed=9))
    first.prune(keep=1)
    assert second.clear_folder(older_than=time.time() - 3600) == 0, "somebody may just have written it"
    assert second.clear_folder() == 2
    assert second.weights.names(older_than=inf) == {made[2].weights, foreign}
    assert second.clear_folder() == 0
