"""Versions and weights: whole or not at all, checked on every load."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from service.database.engine import Database
from service.database.locks import WriterLock
from service.database.weight_files import WeightsFolder
from service.errors import DatabaseInUse, Unavailable
from service.forecasts.version_store import VersionStore
from tests.service.conftest import small_model

AT = datetime(2026, 11, 16, tzinfo=UTC)


def test_a_saved_model_serves_the_same_probabilities(tmp_path: Path) -> None:
    folder, model = WeightsFolder(tmp_path / "weights"), small_model()
    loaded = folder.load(folder.save(model))
    features = np.eye(3, dtype=np.float32)
    assert np.array_equal(loaded.network.logits(features), model.network.logits(features))
    assert (loaded.vocabulary, loaded.spec) == (model.vocabulary, model.spec)
    assert np.array_equal(loaded.thresholds, model.thresholds)
    assert np.array_equal(loaded.calibration.scale, model.calibration.scale)


def test_the_same_model_has_the_same_name_and_leaves_one_file(tmp_path: Path) -> None:
    folder = WeightsFolder(tmp_path)
    assert folder.save(small_model()) == folder.save(small_model())
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_damaged_weights_are_refused_with_a_sentence(tmp_path: Path, damage: str) -> None:
    folder = WeightsFolder(tmp_path)
    name = folder.save(small_model())
    file = tmp_path / f"{name}.safetensors"
    body = bytearray(file.read_bytes())
    body[-1] ^= 1
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(body if damage == "flip" else body[:100])
    with pytest.raises(Unavailable, match="Restore them"):
        folder.load(name)


def test_the_version_promoted_last_is_the_champion_and_the_past_keeps_its_own(
    database: Database, tmp_path: Path
) -> None:
    versions = VersionStore(database, WeightsFolder(tmp_path))
    assert versions.champion() is None
    first = versions.add_and_promote(small_model(seed=1), report={"n": 1}, at=AT)
    second = versions.add_and_promote(small_model(seed=2), report={"n": 2}, at=AT + timedelta(hours=1))
    assert versions.champion() == second
    assert versions.number_at(AT + timedelta(minutes=59)) == first.id
    assert versions.number_at(AT - timedelta(seconds=1)) is None
    assert [version.name for version in versions.all()] == ["v2", "v1"]


def test_one_process_writes_and_the_next_is_told_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with WriterLock(path) as held:
        held.write_address("http://127.0.0.1:9")
        with pytest.raises(DatabaseInUse, match="stop that one first") as refused:
            WriterLock(path).acquire()
        assert refused.value.url == "http://127.0.0.1:9"
    WriterLock(path).acquire().release()
